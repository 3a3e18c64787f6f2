#include "real/train/memory.h"

#include <ATen/DeviceAccelerator.h>
#include <c10/util/Exception.h>

#include <fstream>
#include <string>

#include "real/cpu/counting_allocator.h"
#include "real/cpu/malloc_thresholds.h"

namespace ferry::real::train {

namespace {

// Peaks of a device with a caching allocator, since the last reset.
struct DevicePeaks {
  std::int64_t allocated_bytes = 0;
  std::int64_t reserved_bytes = 0;
};

DevicePeaks device_peaks(c10::Device device) {
  constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  const auto stats = at::getDeviceAllocator(device.type())->getDeviceStats(device.index());
  return {stats.allocated_bytes[kAll].peak, stats.reserved_bytes[kAll].peak};
}
void reset_peaks(c10::Device device) {
  at::getDeviceAllocator(device.type())->resetPeakStats(device.index());
}

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
    reset_peaks(device_);
  }
}

std::int64_t StepMemory::peak_bytes() const {
  if (device_.is_cpu()) return CountingAllocator::instance().peak_bytes();
  return device_peaks(device_).allocated_bytes;
}

std::int64_t StepMemory::reserved_bytes() const {
  return device_.is_cpu() ? 0 : device_peaks(device_).reserved_bytes;
}

std::int64_t StepMemory::rss_bytes() const {
  const Resident now = resident();
  return has_peak_ ? now.peak_bytes : now.bytes;
}

}  // namespace ferry::real::train
