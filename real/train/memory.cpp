#include "real/train/memory.h"

#include <ATen/DeviceAccelerator.h>

#include <fstream>
#include <string>

#include "real/cpu/counting_allocator.h"
#include "real/cpu/malloc_thresholds.h"

namespace ferry::real::train {

namespace {

// Statistics of a device that has a caching allocator, since the last reset.
c10::CachingDeviceAllocator::DeviceStats device_stats(c10::Device device) {
  return at::getDeviceAllocator(device.type())->getDeviceStats(device.index());
}

constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);

}  // namespace

void count_memory() {
  fix_malloc_thresholds();
  CountingAllocator::instance().install();
}

std::int64_t live_bytes() { return CountingAllocator::instance().live_bytes(); }

Resident resident() {
  Resident resident;
  std::ifstream status("/proc/self/status");
  std::string key;
  std::int64_t kibibytes = 0;
  while (status >> key) {
    if ((key == "VmRSS:" || key == "VmHWM:") && status >> kibibytes) {
      (key == "VmRSS:" ? resident.bytes : resident.peak_bytes) = kibibytes << 10;
    }
    std::getline(status, key);
  }
  return resident;
}

StepMemory::StepMemory(c10::Device device) : device_(device) {
  std::ofstream reset("/proc/self/clear_refs");
  reset << 5 << std::flush;
  has_peak_ = reset.good();
  if (device_.is_cpu()) {
    CountingAllocator::instance().reset_peak();
  } else {
    at::getDeviceAllocator(device_.type())->resetPeakStats(device_.index());
  }
}

std::int64_t StepMemory::peak_bytes() const {
  if (device_.is_cpu()) return CountingAllocator::instance().peak_bytes();
  return device_stats(device_).allocated_bytes[kAll].peak;
}

std::int64_t StepMemory::reserved_bytes() const {
  return device_.is_cpu() ? 0 : device_stats(device_).reserved_bytes[kAll].peak;
}

std::int64_t StepMemory::rss_bytes() const {
  const Resident now = resident();
  return has_peak_ ? now.peak_bytes : now.bytes;
}

}  // namespace ferry::real::train
