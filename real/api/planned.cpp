#include "real/api/planned.h"

#include <utility>

#include "ferry/offload.h"
#include "formats/layout.h"
#include "real/tensors/dtype.h"
#include "real/tensors/torch_error.h"

namespace ferry::real {
namespace {

std::string numbers(c10::IntArrayRef values) {
  std::string text = "[";
  for (const std::int64_t value : values) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(value);
  }
  return text + "]";
}

std::string describe(std::string_view dtype, c10::IntArrayRef shape, c10::IntArrayRef strides) {
  return std::string(dtype) + " " + numbers(shape) + " strides " + numbers(strides);
}

// Compares strides, except in dimensions of one element, where they mean nothing.
bool same_strides(c10::IntArrayRef shape, c10::IntArrayRef a, c10::IntArrayRef b) {
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] > 1 && a[i] != b[i]) return false;
  }
  return true;
}

std::string dtype_name(const at::Tensor& tensor) {
  const auto dtype = to_dtype(tensor.scalar_type());
  return dtype ? std::string(name(*dtype)) : c10::toString(tensor.scalar_type());
}

std::string key_of(const PlanEntry& entry) {
  return "saved tensor " + std::to_string(entry.pack) +
         (entry.segment ? " of segment " + std::to_string(*entry.segment) : "") + " (" + entry.op +
         ")";
}

void check(const PlanEntry& entry, const at::Tensor& tensor) {
  const bool strided = tensor.layout() == c10::kStrided;
  const c10::IntArrayRef strides = strided ? tensor.strides() : c10::IntArrayRef();
  if (strided && to_dtype(tensor.scalar_type()) == entry.layout.dtype &&
      tensor.sizes() == c10::IntArrayRef(entry.layout.shape) &&
      same_strides(tensor.sizes(), strides, entry.layout.strides)) {
    return;
  }
  throw torch_error(
      PlanMismatch("the model does not match the plan at " + key_of(entry) + ": the plan has " +
                   describe(name(entry.layout.dtype), entry.layout.shape, entry.layout.strides) +
                   ", the model saves " + describe(dtype_name(tensor), tensor.sizes(), strides)));
}

}  // namespace

PlannedHooks::PlannedHooks(std::vector<PlanEntry> entries, std::shared_ptr<Hooks<at::Tensor>> hooks)
    : entries_(std::move(entries)), hooks_(std::move(hooks)) {
  std::erase_if(entries_, [](const PlanEntry& entry) {
    return entry.segment && entry.decision != PlanChoice::kOffload;
  });
}

std::unique_ptr<Saved<at::Tensor>> PlannedHooks::pack(const at::Tensor& tensor) {
  const std::uint64_t pack = packs_++;
  try {
    if (pack < entries_.size()) {
      check(entries_[pack], tensor);
    } else if (TorchAutograd().graph_task() == GraphTaskId::kNone) {
      throw torch_error(PlanMismatch("the model does not match the plan at saved tensor " +
                                     std::to_string(pack) +
                                     ": the plan ends before it, the model saves " +
                                     dtype_name(tensor) + " " + numbers(tensor.sizes())));
    }
    return hooks_->pack(tensor);
  } catch (...) {
    failed_ = true;
    throw;
  }
}

void PlannedHooks::begin_run() {
  const std::uint64_t packs = packs_.exchange(0);
  if (failed_.exchange(false) || packs == 0 || packs >= entries_.size()) return;
  const PlanEntry& missing = entries_[packs];
  throw torch_error(PlanMismatch("the model does not match the plan at " + key_of(missing) +
                                 ": the last forward saved " + std::to_string(packs) +
                                 " tensors, the plan has " + std::to_string(entries_.size())));
}

}  // namespace ferry::real
