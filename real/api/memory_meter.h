// How much memory a device has in use while an Offload moves what is saved, and how much it would
// have had if nothing moved: what is in use, and what is on the host's side alone at that moment.
//
// A sample is taken as forwards begin and end, now and then between, and when somebody asks. What
// the allocator's own peak rose by since the last sample counts as well, so the peak that is
// reported is the device's; that without moving is of the moments that were sampled, and the true
// one may be higher. On a CPU the memory is the process's resident memory; without a disk there is
// nothing to tell, for what moves stays in it.
//
// Not thread-safe: DeviceOffloaders has the lock.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <optional>

#include "ferry/offload.h"

namespace ferry::real {

class MemoryMeter {
 public:
  explicit MemoryMeter(c10::Device device) : device_(device) {}

  // `away_bytes`: what is on the host's side and not on the device.
  void sample(std::int64_t away_bytes);
  // Zeros where the device does not tell.
  const OffloadMemory& memory() const { return memory_; }

 private:
  const c10::Device device_;
  std::optional<std::int64_t> known_peak_bytes_;  // the allocator's, as it was last
  OffloadMemory memory_;
};

}  // namespace ferry::real
