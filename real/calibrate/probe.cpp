#include "real/calibrate/probe.h"

#include <c10/util/Exception.h>

#include <array>
#include <atomic>
#include <utility>

#include "real/calibrate/host.h"
#include "real/calibrate/probe_of.h"
#include "real/cpu/cpu_device.h"

namespace ferry::real::calibrate {
namespace {

constexpr std::size_t kDeviceTypes = static_cast<std::size_t>(c10::COMPILE_TIME_MAX_DEVICE_TYPES);
std::array<std::atomic<MakeProbe>, kDeviceTypes>& makers() {
  static std::array<std::atomic<MakeProbe>, kDeviceTypes> makers{};
  return makers;
}

// Uses the same options as Offload (real/api/device_offloaders.cpp).
std::unique_ptr<Probe> make_cpu(const std::filesystem::path& disk) {
  CpuDeviceOptions options;
  if (!disk.empty()) options.disk = DiskOptions{.directory = disk, .keep_freed = true};
  CpuDevice device(std::move(options));
  Machine machine = host_machine();
  machine.host_memory_bytes = device.host_usage().total_bytes;
  // The CPU has only one kind of host memory.
  return std::make_unique<ProbeOf<CpuDevice>>(std::move(device), c10::Device(c10::DeviceType::CPU),
                                              std::move(machine),
                                              std::vector<HostMemory>{HostMemory::kPinned});
}

}  // namespace

Effort effort_of(bool small, std::int64_t rounds) {
  Effort effort{.copy_bytes = {}, .rounds = rounds, .small = small};
  const std::int64_t largest = small ? std::int64_t{1} << 20 : std::int64_t{1} << 28;
  for (std::int64_t bytes = 1 << 10; bytes <= largest; bytes *= 4) {
    effort.copy_bytes.push_back(bytes);
  }
  return effort;
}

void register_probe(c10::DeviceType type, MakeProbe make) {
  makers()[static_cast<std::size_t>(type)] = make;
}

std::unique_ptr<Probe> make_probe(c10::DeviceType type, const std::filesystem::path& disk) {
  if (type == c10::DeviceType::CPU) return make_cpu(disk);
  const MakeProbe make = makers()[static_cast<std::size_t>(type)];
  TORCH_CHECK(make, "ferry calibrate was built without support for ", type);
  return make(disk);
}

}  // namespace ferry::real::calibrate
