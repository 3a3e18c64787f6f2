// Measures how much memory a device uses during offloading, and how much it would use without it:
// the bytes in use, plus the bytes that are only on the host at that moment.
//
// Samples are taken when forwards begin and end, sometimes in between, and on request. A rise of
// the allocator's own peak since the last sample counts too, so the reported peak is the true one.
// The peak without offloading comes from the sampled moments only, so the true value may be higher.
// On the CPU, memory means the resident memory of the process. Without a disk nothing can be
// measured there, because offloaded tensors stay in that memory.
//
// Not thread-safe: DeviceOffloaders holds its lock.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <optional>

#include "ferry/offload.h"

namespace ferry::real {

class MemoryMeter {
 public:
  explicit MemoryMeter(c10::Device device) : device_(device) {}

  // `away_bytes` are the bytes on the host that are not on the device.
  void sample(std::int64_t away_bytes);
  // Returns zeros if the device does not report its memory.
  const OffloadMemory& memory() const { return memory_; }

 private:
  const c10::Device device_;
  std::optional<std::int64_t> known_peak_bytes_;  // the allocator's peak at the last sample
  OffloadMemory memory_;
};

}  // namespace ferry::real
