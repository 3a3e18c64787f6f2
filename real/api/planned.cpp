#include "real/api/planned.h"

#include <c10/util/Logging.h>

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

// Whether an allocator's options are those that a plan names; one that names none does not care.
// Options that are not modelled are others.
bool has_alloc_conf(const std::string& settings, const std::string& planned) {
  if (planned.empty()) return true;
  try {
    return to_string(parse_alloc_conf(settings, "the allocator")) == planned;
  } catch (const InputError&) {
    return false;
  }
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
