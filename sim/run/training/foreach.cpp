#include "sim/run/training/foreach.h"

#include <utility>

#include "formats/hash.h"
#include "formats/layout.h"

namespace ferry::sim {

void Foreach::launch(std::string_view name, std::initializer_list<const TensorList*> reads,
                     std::initializer_list<const TensorList*> writes) {
  std::vector<Range> read, written;
  Op op;
  for (const TensorList* list : reads) {
    for (const Tensor& tensor : *list) {
      read.push_back(range_of(tensor));
      op.read_bytes += static_cast<std::int64_t>(read.back().bytes);
    }
  }
  for (const TensorList* list : writes) {
    for (const Tensor& tensor : *list) {
      written.push_back(range_of(tensor));
      op.written_bytes += static_cast<std::int64_t>(written.back().bytes);
      ++tensor->version->value;
    }
  }
  const std::uint64_t tag = fnv1a(name) ^ (++launches_ << 32);  // each computes another value
  const KernelTime time = times_.of(op, DType::kF32);
  busy_ns_ += time.ns;
  machine_.kernel(name, tag, read, written, time);
}

Tensor Foreach::empty(std::int64_t bytes, MemoryKind kind) {
  const auto window =
      std::make_shared<const Window>(Window{contiguous_layout(DType::kU8, {bytes}), {0, bytes}});
  return make_tensor(machine_.allocate(bytes, machine_.current_stream(), Step::kUser, kind),
                     {window, 0}, machine_.new_version());
}

TensorList Foreach::empty_like(const TensorList& like, MemoryKind kind) {
  TensorList made;
  const std::uint32_t place = machine_.place();
  for (const Tensor& each : like) {
    machine_.set_place(each->storage->place);
    made.push_back(empty(each->layout.extent().bytes(), kind));
  }
  machine_.set_place(place);
  return made;
}

void drop(TensorList& list) {
  while (!list.empty()) list.pop_back();
}

}  // namespace ferry::sim
