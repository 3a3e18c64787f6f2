#include "real/api/device_wards.h"

#include <array>
#include <mutex>

#include "real/cpu/cpu_device.h"

namespace ferry::real {
namespace {

struct Registered {
  std::mutex mutex;
  std::array<WardMakers, static_cast<std::size_t>(c10::COMPILE_TIME_MAX_DEVICE_TYPES)> makers;
};
Registered& registered() {
  static auto* const all = new Registered;
  return *all;
}

WardMakers makers_of(c10::Device device, const Disk& disk) {
  TORCH_CHECK_VALUE(!disk, "disk: a folder is for the CPU; the device is ", device);
  const std::lock_guard lock(registered().mutex);
  const WardMakers makers = registered().makers[static_cast<std::size_t>(device.type())];
  TORCH_CHECK(makers.wards, "ferry keeps nothing on the host for ", device);
  return makers;
}

CpuDevice cpu_device(const Disk& disk, const std::shared_ptr<StreamLog>& log) {
  CpuDeviceOptions options;
  if (disk) options.disk = DiskOptions{.directory = *disk, .keep_freed = true};
  if (log) options.pool_observer = [log](const PoolBlock& block) { log->pool_block(block); };
  return CpuDevice(std::move(options));
}

}  // namespace

void register_wards(c10::DeviceType type, WardMakers makers) {
  const std::lock_guard lock(registered().mutex);
  registered().makers[static_cast<std::size_t>(type)] = makers;
}

std::unique_ptr<DeviceWards> make_wards(c10::Device device, WardOptions options, const Disk& disk) {
  if (!device.is_cpu()) return makers_of(device, disk).wards(device, std::move(options));
  const std::shared_ptr<StreamLog> log = StreamLog::active();
  return make_wards_on(cpu_device(disk, log), std::move(options), log);
}

std::shared_ptr<DeviceWeights> make_weights(c10::Device device, WardOptions options,
                                            const Disk& disk) {
  if (!device.is_cpu()) return makers_of(device, disk).weights(device, std::move(options));
  const std::shared_ptr<StreamLog> log = StreamLog::active();
  return make_weights_on(cpu_device(disk, log), std::move(options), log);
}

}  // namespace ferry::real
