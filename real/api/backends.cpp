#include "real/api/backends.h"

#include <algorithm>
#include <utility>

#include "real/tensors/torch_error.h"

namespace ferry::real {

Backends::Backends(OffloadOptions options, CoreOptions core, SpanObserver observer)
    : options_(std::move(options)), core_(std::move(core)), observer_(std::move(observer)) {
  with_torch_errors([&] { check_options(core_); });
  if (options_.device()) {
    make(*options_.device());
  } else if (!options_.disk().empty()) {
    make(c10::kCPU);
  }
}

std::unique_ptr<Saved<at::Tensor>> Backends::pack(const at::Tensor& tensor) {
  std::shared_ptr<Hooks<at::Tensor>> hooks;
  {
    const std::lock_guard lock(mutex_);
    Backend& backend = of(tensor.defined() ? tensor.device() : c10::Device(c10::kCPU));
    if (entries_.size() > 1) backend.continue_at(runs_, packs_);
    ++packs_;
    hooks = backend.hooks();
  }
  return hooks->pack(tensor);
}

// Parameters may move to another device later, so every offloader must know them.
void Backends::exempt(const at::Tensor& tensor) {
  constexpr std::size_t kFew = 64;
  const std::lock_guard lock(mutex_);
  for (const Entry& entry : entries_) entry.backend->exempt(tensor);
  if (options_.device() || !tensor.defined()) return;
  exempt_.emplace_back(tensor.getIntrusivePtr());
  if (exempt_.size() <= exempt_due_) return;
  std::erase_if(exempt_, [](const auto& known) { return known.expired(); });
  std::sort(exempt_.begin(), exempt_.end(), [](const auto& one, const auto& other) {
    return std::less<>()(one._unsafe_get_target(), other._unsafe_get_target());
  });
  exempt_.erase(std::unique(exempt_.begin(), exempt_.end()), exempt_.end());
  exempt_due_ = 2 * exempt_.size() + kFew;
}

void Backends::begin_run() {
  const std::lock_guard lock(mutex_);
  ++runs_;
  packs_ = 0;
  for (const Entry& entry : entries_) entry.backend->begin_run();
}

OffloadStatistics Backends::statistics() const {
  const std::lock_guard lock(mutex_);
  OffloadStatistics sum;
  for (const Entry& entry : entries_) sum += entry.backend->statistics();
  return sum;
}

bool Backends::empty() const {
  const std::lock_guard lock(mutex_);
  return std::all_of(entries_.begin(), entries_.end(),
                     [](const Entry& entry) { return entry.backend->empty(); });
}

void Backends::flush() {
  const std::lock_guard lock(mutex_);
  for (const Entry& entry : entries_) entry.backend->flush();
}

std::vector<c10::Device> Backends::devices() const {
  const std::lock_guard lock(mutex_);
  std::vector<c10::Device> all;
  for (const Entry& entry : entries_) all.push_back(entry.device);
  return all;
}

std::string Backends::where() const {
  const std::lock_guard lock(mutex_);
  std::string text;
  const auto add = [&](const std::string& words) { text += (text.empty() ? "" : ", ") + words; };
  for (const auto& [device, backend] : entries_) {
    const char* const tier = !options_.disk().empty()                   ? " to the disk"
                             : device.is_cpu()                          ? " to memory of its own"
                             : core_.host_memory == HostMemory::kPinned ? " to page-locked memory"
                                                                        : " to pageable memory";
    add(device.str() + tier);
  }
  for (const c10::Device& device : unserved_) {
    add(device.str() + " not at all (no offloader for it is linked)");
  }
  return text.empty() ? "nothing" : text;
}

// --- Called under the lock

Backends::Entry& Backends::make(c10::Device device) {
  Entry entry{device, make_backend(device, options_, core_, observer_)};
  for (const auto& known : exempt_) {
    const auto tensor = known.lock();
    if (tensor.defined()) entry.backend->exempt(at::Tensor(tensor));
  }
  entry.backend->continue_at(runs_, packs_);
  entries_.push_back(std::move(entry));
  return entries_.back();
}

Backend& Backends::of(c10::Device device) {
  if (options_.device() || !options_.disk().empty()) return *entries_.front().backend;
  for (const Entry& entry : entries_) {
    if (entry.device == device) return *entry.backend;
  }
  if (has_backend(device)) return *make(device).backend;
  // Records a device that no offloader serves, once.
  if (std::find(unserved_.begin(), unserved_.end(), device) == unserved_.end()) {
    unserved_.push_back(device);
  }
  return entries_.empty() ? *make(c10::kCPU).backend : *entries_.front().backend;
}

}  // namespace ferry::real
