#include "real/api/device_offloaders.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "real/cpu/cpu_device.h"
#include "real/tensors/torch_error.h"

namespace ferry::real {
namespace {

constexpr std::size_t kDeviceTypes = static_cast<std::size_t>(c10::COMPILE_TIME_MAX_DEVICE_TYPES);
// The functions that libraries register when they are loaded, by type of device.
template <class Function>
std::atomic<Function>& registered(c10::DeviceType type) {
  static std::array<std::atomic<Function>, kDeviceTypes> all{};
  return all[static_cast<std::size_t>(type)];
}

DeviceOffloader make_cpu(const OffloadOptions& options, CoreOptions core, SpanObserver observer) {
  CpuDeviceOptions device_options;
  device_options.fix_malloc = options.fix_malloc();
  if (!options.disk().empty()) {
    // Steps reuse their blocks; returning each one to the file system would cost more.
    device_options.disk = DiskOptions{
        .directory = options.disk(), .bytes_max = options.disk_bytes_max(), .keep_freed = true};
  }
  const std::shared_ptr<StreamLog> log = StreamLog::active();
  if (log) device_options.pool_observer = [log](const PoolBlock& block) { log->pool_block(block); };
  CpuDevice device(std::move(device_options));
  if (observer) device.set_observer(std::move(observer));
  return make_offloader_on(std::move(device), std::move(core), log);
}

bool has_maker(c10::Device device) {
  return device.is_cpu() || registered<MakeOffloader>(device.type()) != nullptr;
}

// Throws c10::Error if no maker is registered for the device.
DeviceOffloader make_offloader(c10::Device device, const OffloadOptions& options, CoreOptions core,
                               SpanObserver observer) {
  const c10::DeviceType type = device.type();
  if (type == c10::DeviceType::CPU) return make_cpu(options, std::move(core), std::move(observer));
  TORCH_CHECK_VALUE(options.disk().empty(), "OffloadOptions::disk is for the CPU; the device is ",
                    device);
  const MakeOffloader make = registered<MakeOffloader>(type);
  TORCH_CHECK(make, "ferry has no offloading for ", device,
              type == c10::DeviceType::CUDA ? ": link ferry::real_cuda" : "");
  return make(device, options, std::move(core), std::move(observer));
}

}  // namespace

void register_offloader(c10::DeviceType type, MakeOffloader make) {
  registered<MakeOffloader>(type) = make;
}

void register_allocator(c10::DeviceType type, AllocatorSettings settings) {
  registered<AllocatorSettings>(type) = settings;
}

std::optional<std::string> allocator_settings(c10::DeviceType type) {
  const AllocatorSettings settings = registered<AllocatorSettings>(type);
  if (!settings) return std::nullopt;
  return settings();
}

DeviceOffloaders::DeviceOffloaders(OffloadOptions options, CoreOptions core, SpanObserver observer)
    : options_(std::move(options)), core_(std::move(core)), observer_(std::move(observer)) {
  with_torch_errors([&] { check_options(core_); });
  if (options_.device()) {
    make(*options_.device());
  } else if (!options_.disk().empty()) {
    make(c10::kCPU);
  }
}

std::unique_ptr<Saved<at::Tensor>> DeviceOffloaders::pack(const at::Tensor& tensor) {
  constexpr std::uint64_t kPacksToASample = 16;
  std::shared_ptr<OffloadHooks<at::Tensor>> hooks;
  {
    const std::lock_guard lock(mutex_);
    if (packs_ % kPacksToASample == kPacksToASample - 1) sample();
    hooks = serving(tensor.defined() ? tensor.device() : c10::Device(c10::kCPU));
    if (entries_.size() > 1) hooks->continue_at(runs_, packs_);
    ++packs_;
  }
  return hooks->pack(tensor);
}

// Parameters may move to another device later, so every offloader must know them.
void DeviceOffloaders::exempt(const at::Tensor& tensor) {
  constexpr std::size_t kFew = 64;
  const std::lock_guard lock(mutex_);
  for (const Entry& entry : entries_) entry.offloader.hooks->exempt(tensor);
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

void DeviceOffloaders::begin_run() {
  const std::lock_guard lock(mutex_);
  sample();  // the previous backward is over
  ++runs_;
  packs_ = 0;
  for (const Entry& entry : entries_) entry.offloader.hooks->begin_run();
}

OffloadStatistics DeviceOffloaders::statistics() const {
  const std::lock_guard lock(mutex_);
  OffloadStatistics sum;
  for (const Entry& entry : entries_) sum += entry.offloader.hooks->statistics();
  return sum;
}

OffloadMemory DeviceOffloaders::memory() {
  const std::lock_guard lock(mutex_);
  sample();
  OffloadMemory sum;
  for (const Entry& entry : entries_) {
    sum.peak_bytes += entry.meter.memory().peak_bytes;
    sum.peak_without_bytes += entry.meter.memory().peak_without_bytes;
  }
  return sum;
}

bool DeviceOffloaders::saves_nothing() const {
  const std::lock_guard lock(mutex_);
  return options_.disk().empty() && !entries_.empty() &&
         std::all_of(entries_.begin(), entries_.end(),
                     [](const Entry& entry) { return entry.device.is_cpu(); });
}

bool DeviceOffloaders::empty() const {
  const std::lock_guard lock(mutex_);
  return std::all_of(entries_.begin(), entries_.end(),
                     [](const Entry& entry) { return entry.offloader.hooks->empty(); });
}

void DeviceOffloaders::flush() {
  const std::lock_guard lock(mutex_);
  for (const Entry& entry : entries_) entry.offloader.flush();
}

std::vector<c10::Device> DeviceOffloaders::devices() const {
  const std::lock_guard lock(mutex_);
  std::vector<c10::Device> all;
  for (const Entry& entry : entries_) all.push_back(entry.device);
  return all;
}

std::string DeviceOffloaders::where() const {
  const std::lock_guard lock(mutex_);
  std::string text;
  const auto add = [&](const std::string& words) { text += (text.empty() ? "" : ", ") + words; };
  for (const Entry& entry : entries_) {
    const c10::Device device = entry.device;
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

// On the CPU without a disk, offloaded tensors stay in the same memory, so there is nothing to
// sample.
void DeviceOffloaders::sample() {
  for (Entry& entry : entries_) {
    if (entry.device.is_cpu() && options_.disk().empty()) continue;
    const OffloadStatistics counts = entry.offloader.hooks->statistics();
    const std::int64_t here = counts.forward_stash_bytes + counts.backward_stash_bytes;
    entry.meter.sample(std::max<std::int64_t>(entry.offloader.host_bytes() - here, 0));
  }
}

DeviceOffloaders::Entry& DeviceOffloaders::make(c10::Device device) {
  Entry entry{device, make_offloader(device, options_, core_, observer_), MemoryMeter(device)};
  for (const auto& known : exempt_) {
    const auto tensor = known.lock();
    if (tensor.defined()) entry.offloader.hooks->exempt(at::Tensor(tensor));
  }
  entry.offloader.hooks->continue_at(runs_, packs_);
  entries_.push_back(std::move(entry));
  return entries_.back();
}

const std::shared_ptr<OffloadHooks<at::Tensor>>& DeviceOffloaders::serving(c10::Device device) {
  if (options_.device() || !options_.disk().empty()) return entries_.front().offloader.hooks;
  for (const Entry& entry : entries_) {
    if (entry.device == device) return entry.offloader.hooks;
  }
  if (has_maker(device)) return make(device).offloader.hooks;
  // Remembers a device that no offloader serves.
  if (std::find(unserved_.begin(), unserved_.end(), device) == unserved_.end()) {
    unserved_.push_back(device);
  }
  return entries_.empty() ? make(c10::kCPU).offloader.hooks : entries_.front().offloader.hooks;
}

}  // namespace ferry::real
