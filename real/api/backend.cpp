#include "real/api/backend.h"

#include <array>
#include <atomic>
#include <utility>

#include "real/cpu/cpu_device.h"

namespace ferry::real {
namespace {

constexpr std::size_t kDeviceTypes = static_cast<std::size_t>(c10::COMPILE_TIME_MAX_DEVICE_TYPES);
// What libraries register when they are loaded, by device type.
template <class Function>
std::atomic<Function>& registered(c10::DeviceType type) {
  static std::array<std::atomic<Function>, kDeviceTypes> all{};
  return all[static_cast<std::size_t>(type)];
}

std::unique_ptr<Backend> make_cpu(const OffloadOptions& options, CoreOptions core,
                                  SpanObserver observer) {
  CpuDeviceOptions device_options;
  device_options.fix_malloc = options.fix_malloc();
  if (!options.disk().empty()) {
    // Steps reuse their blocks: returning each one to the file system costs more.
    device_options.disk = DiskOptions{
        .directory = options.disk(), .bytes_max = options.disk_bytes_max(), .keep_freed = true};
  }
  const std::shared_ptr<StreamLog> log = StreamLog::active();
  if (log) device_options.pool_observer = [log](const PoolBlock& block) { log->pool_block(block); };
  CpuDevice device(std::move(device_options));
  if (observer) device.set_observer(std::move(observer));
  return make_backend_of(std::move(device), std::move(core), log);
}

}  // namespace

void register_backend(c10::DeviceType type, MakeBackend make) {
  registered<MakeBackend>(type) = make;
}

bool has_backend(c10::Device device) {
  return device.is_cpu() || registered<MakeBackend>(device.type()) != nullptr;
}

void register_allocator(c10::DeviceType type, AllocatorSettings settings) {
  registered<AllocatorSettings>(type) = settings;
}

std::optional<std::string> allocator_settings(c10::DeviceType type) {
  const AllocatorSettings settings = registered<AllocatorSettings>(type);
  if (!settings) return std::nullopt;
  return settings();
}

std::unique_ptr<Backend> make_backend(c10::Device device, const OffloadOptions& options,
                                      CoreOptions core, SpanObserver observer) {
  const c10::DeviceType type = device.type();
  if (type == c10::DeviceType::CPU) return make_cpu(options, std::move(core), std::move(observer));
  TORCH_CHECK_VALUE(options.disk().empty(), "OffloadOptions::disk is for the CPU; the device is ",
                    device);
  const MakeBackend make = registered<MakeBackend>(type);
  TORCH_CHECK(make, "ferry has no offloading for ", device,
              type == c10::DeviceType::CUDA ? ": link ferry::real_cuda" : "");
  return make(device, options, std::move(core), std::move(observer));
}

}  // namespace ferry::real
