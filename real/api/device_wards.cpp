#include "real/api/device_wards.h"

#include <array>
#include <atomic>

#include "real/cpu/cpu_device.h"

namespace ferry::real {
namespace {

std::atomic<MakeWards>& registered_wards(c10::DeviceType type) {
  static std::array<std::atomic<MakeWards>,
                    static_cast<std::size_t>(c10::COMPILE_TIME_MAX_DEVICE_TYPES)>
      all{};
  return all[static_cast<std::size_t>(type)];
}

}  // namespace

void register_wards(c10::DeviceType type, MakeWards make) { registered_wards(type) = make; }

std::unique_ptr<DeviceWards> make_wards(c10::Device device, WardOptions options,
                                        const std::optional<std::filesystem::path>& disk) {
  if (!device.is_cpu()) {
    TORCH_CHECK_VALUE(!disk, "disk: a folder is for the CPU; the device is ", device);
    const MakeWards make = registered_wards(device.type());
    TORCH_CHECK(make, "ferry keeps no optimizer state on the host for ", device);
    return make(device, std::move(options));
  }
  CpuDeviceOptions device_options;
  if (disk) device_options.disk = DiskOptions{.directory = *disk, .keep_freed = true};
  const std::shared_ptr<StreamLog> log = StreamLog::active();
  if (log) device_options.pool_observer = [log](const PoolBlock& block) { log->pool_block(block); };
  return make_wards_on(CpuDevice(std::move(device_options)), std::move(options), log);
}

}  // namespace ferry::real
