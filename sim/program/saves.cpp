#include "sim/program/saves.h"

#include <memory>
#include <utility>

#include "formats/layout.h"

namespace ferry::sim {
namespace {

// While it lives, this node is the one that saves a tensor. (It is a destructor, because a handler
// that throws again would unwind twice: recomputes end with an exception.)
class Named {
 public:
  Named(std::string_view& now, std::string_view name) : now_(now) { now_ = name; }
  Named(const Named&) = delete;
  Named& operator=(const Named&) = delete;
  ~Named() { now_ = {}; }

 private:
  std::string_view& now_;
};

}  // namespace

SavedTensor Saves::save(std::string_view name, const Value& value) {
  SavedTensor saved;
  saved.edge = value.edge;
  if (!value.tensor) return saved;
  if (values_) {
    saved.contents = values_->read(range_of(value.tensor));
    saved.window = value.tensor->layout.window;
  }
  StorageImpl& storage = *value.tensor->storage;
  if (storage.kind == MemoryKind::kTemporary) machine_.set_kind(storage, MemoryKind::kActivation);
  {
    const Named saving(saving_node_, name);
    saved.packed = hooks_.pack(value.tensor);
  }
  if (!saved.packed) {
    saved.plain = std::make_shared<TensorImpl>(*value.tensor);
    saved.version_at_save = value.tensor->version->value;
  }
  return saved;
}

Value Saves::unpack(std::string_view name, const SavedTensor& saved) {
  Value value;
  value.edge = saved.edge;
  if (saved.packed) {
    value.tensor = saved.packed->unpack();
  } else if (saved.plain) {
    if (saved.plain->version->value != saved.version_at_save) {
      throw make_error<Tensor>(ModifiedInPlace(saved.plain->version->value, saved.version_at_save));
    }
    value.tensor = saved.plain;
  } else {
    return value;
  }
  if (values_) check_unpacked(name, saved, value.tensor);
  return value;
}

namespace {

// A view with gaps may come back without its gaps.
bool is_dense_copy(const Layout& now, const SavedTensor& saved) {
  const Layout& before = saved.window->layout;
  const bool gaps = saved.window->extent.bytes() > tensor_bytes(before);
  return gaps && before.dtype == now.dtype && before.shape == now.shape && is_contiguous(now);
}

}  // namespace

// Equal contents with other strides count as another value, except in a dense copy of a view with
// gaps.
void Saves::check_unpacked(std::string_view name, const SavedTensor& saved, const Tensor& tensor) {
  const Layout& before = saved.window->layout;
  const Layout& now = tensor->layout.window->layout;
  const bool same_layout =
      before.dtype == now.dtype && before.shape == now.shape && before.strides == now.strides;
  const Range range = range_of(tensor);
  if (same_layout && values_->read(range) == saved.contents) return;
  if (is_dense_copy(now, saved) &&
      values_->read(range) == check::Values::gathered(saved.contents, range.bytes)) {
    return;
  }
  check::Hazard hazard;
  hazard.kind = check::HazardKind::kValue;
  hazard.later.name = name;
  hazard.later.stream = machine_.current_stream();
  hazard.range = range_of(tensor);
  hazard.message = "wrong value: a tensor that ";
  hazard.message += name;
  hazard.message += same_layout ? " saved came back with other contents"
                                : " saved came back with another shape, type or strides";
  wrong_values_.report(std::move(hazard));
}

}  // namespace ferry::sim
