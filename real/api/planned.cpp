#include "real/api/planned.h"

#include <c10/util/Logging.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "ferry/offload.h"
#include "formats/alloc_conf.h"
#include "formats/error.h"
#include "formats/layout.h"
#include "real/api/device_offloaders.h"
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

// Compares strides, except in dimensions with one element, where they have no meaning.
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

enum class Likeness : std::uint8_t { kSame, kOtherSizes, kOther };

Likeness compare(const PlanEntry& entry, const at::Tensor& tensor) {
  if (tensor.layout() != c10::kStrided || to_dtype(tensor.scalar_type()) != entry.layout.dtype) {
    return Likeness::kOther;
  }
  const c10::IntArrayRef planned(entry.layout.shape);
  if (tensor.sizes() != planned) {
    return tensor.sizes().size() == planned.size() ? Likeness::kOtherSizes : Likeness::kOther;
  }
  const bool same = same_strides(planned, tensor.strides(), entry.layout.strides);
  return same ? Likeness::kSame : Likeness::kOther;
}

std::string difference(const PlanEntry& entry, const at::Tensor& tensor) {
  const bool strided = tensor.layout() == c10::kStrided;
  const c10::IntArrayRef strides = strided ? tensor.strides() : c10::IntArrayRef();
  return "the model does not match the plan at " + key_of(entry) + ": the plan has " +
         describe(name(entry.layout.dtype), entry.layout.shape, entry.layout.strides) +
         ", the model saves " + describe(dtype_name(tensor), tensor.sizes(), strides);
}

// True if the allocator has the options that the plan names, or if the plan names none. Options
// that Ferry does not model count as different.
bool has_alloc_conf(const std::string& settings, const std::string& planned) {
  if (planned.empty()) return true;
  try {
    return to_string(parse_alloc_conf(settings, "the allocator")) == planned;
  } catch (const InputError&) {
    return false;
  }
}

}  // namespace

PlannedHooks::PlannedHooks(std::vector<PlanEntry> entries, std::shared_ptr<Hooks<at::Tensor>> hooks,
                           std::shared_ptr<OtherForwards> others,
                           std::shared_ptr<Hooks<at::Tensor>> of_others)
    : entries_(std::move(entries)),
      hooks_(std::move(hooks)),
      others_(std::move(others)),
      of_others_(std::move(of_others)) {
  std::erase_if(entries_, [](const PlanEntry& entry) {
    return entry.segment && entry.decision != PlanChoice::kOffload;
  });
}

void PlannedHooks::check(std::uint64_t pack, const at::Tensor& tensor) {
  if (pack < entries_.size()) {
    const Likeness likeness = compare(entries_[pack], tensor);
    if (likeness == Likeness::kSame) return;
    return others_->meet(difference(entries_[pack], tensor), likeness == Likeness::kOtherSizes);
  }
  if (TorchAutograd().graph_task() != GraphTaskId::kNone) return;
  const bool strided = tensor.layout() == c10::kStrided;
  const bool small = strided && static_cast<std::int64_t>(tensor.nbytes()) <= kTailBytes;
  if (small && others_->are_allowed()) return;
  others_->meet("the model does not match the plan at saved tensor " + std::to_string(pack) +
                    ": the plan ends before it, the model saves " + dtype_name(tensor) + " " +
                    numbers(tensor.sizes()) + "; one guard is one forward",
                false);
}

std::unique_ptr<Saved<at::Tensor>> PlannedHooks::pack(const at::Tensor& tensor) {
  const std::uint64_t pack = packs_++;
  try {
    if (!others_->is_here()) check(pack, tensor);
    return (others_->is_here() ? of_others_ : hooks_)->pack(tensor);
  } catch (...) {
    failed_ = true;
    throw;
  }
}

void PlannedHooks::end_run() {
  const std::uint64_t packs = packs_.exchange(0);
  if (failed_.exchange(false) || packs == 0) return others_->end_run(false);
  const auto stays = [](const PlanEntry& entry) {
    return entry.decision == PlanChoice::kKeep && tensor_bytes(entry.layout) <= kTailBytes;
  };
  const auto missing = entries_.begin() +
                       static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(packs, entries_.size()));
  const bool whole = others_->are_allowed() ? std::all_of(missing, entries_.end(), stays)
                                            : missing == entries_.end();
  if (!whole) {
    try {
      others_->meet("the model does not match the plan at " + key_of(*missing) +
                        ": the last forward saved " + std::to_string(packs) +
                        " tensors, the plan has " + std::to_string(entries_.size()),
                    false);
    } catch (...) {
      others_->end_run(false);
      throw;
    }
  }
  others_->end_run(whole);
}

void warn_of_allocators(const std::vector<c10::Device>& devices, const std::string& alloc_conf,
                        const std::function<void(const std::string&)>& warn) {
  for (const c10::Device& device : devices) {
    const std::optional<std::string> settings = allocator_settings(device.type());
    if (!settings || has_alloc_conf(*settings, alloc_conf)) continue;
    const std::string has = settings->empty() ? "the usual options" : "\"" + *settings + "\"";
    const std::string text = "the plan is for PYTORCH_CUDA_ALLOC_CONF=" + alloc_conf + "; " +
                             device.str() + "'s allocator has " + has +
                             ", and may need more memory than was planned";
    if (warn) {
      warn(text);
    } else {
      LOG(WARNING) << "ferry: " << text;
    }
  }
}

}  // namespace ferry::real
