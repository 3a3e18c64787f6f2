#include "real/api/memory_meter.h"

#include <ATen/DeviceAccelerator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace ferry::real {
namespace {

struct InUse {
  std::int64_t bytes = 0;
  std::int64_t peak_bytes = 0;  // the highest, since an unknown time
};

// Returns the resident memory of the process; none without /proc.
std::optional<InUse> resident() {
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return std::nullopt;
  long total = 0;
  long pages = 0;
  const int read = std::fscanf(file, "%ld %ld", &total, &pages);
  std::fclose(file);
  rusage usage{};
  if (read != 2 || getrusage(RUSAGE_SELF, &usage) != 0) return std::nullopt;
  constexpr std::int64_t kKibibyte = 1024;
  return InUse{pages * std::int64_t{sysconf(_SC_PAGESIZE)}, usage.ru_maxrss * kKibibyte};
}

std::optional<InUse> allocated(c10::Device device) {
  constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  auto* const allocator = dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(device.type()));
  if (allocator == nullptr || !allocator->initialized()) return std::nullopt;
  const c10::DeviceIndex index =  // an Offload for "cuda" means the current one
      device.has_index() ? device.index()
                         : c10::impl::getDeviceGuardImpl(device.type())->getDevice().index();
  const auto stats = allocator->getDeviceStats(index).allocated_bytes[kAll];
  return InUse{stats.current, stats.peak};
}

}  // namespace

void MemoryMeter::sample(std::int64_t away_bytes) {
  const std::optional<InUse> now = device_.is_cpu() ? resident() : allocated(device_);
  if (!now) return;
  const bool rose = known_peak_bytes_ && now->peak_bytes > *known_peak_bytes_;
  known_peak_bytes_ = now->peak_bytes;
  memory_.peak_bytes = std::max({memory_.peak_bytes, now->bytes, rose ? now->peak_bytes : 0});
  memory_.peak_without_bytes =
      std::max({memory_.peak_without_bytes, memory_.peak_bytes, now->bytes + away_bytes});
}

}  // namespace ferry::real
