// Measures the memory of a step: the peaks of the device's live bytes and of the resident size.
//
// On the CPU the live bytes are those that LibTorch's CPU allocator has handed out; count_memory()
// installs an allocator that counts them (real/cpu/counting_allocator.h). On CUDA the caching
// allocator counts.
//
// The kernel reports the resident size. Writing 5 to /proc/self/clear_refs resets its peak at the
// start of a step; if that is not possible, the size at the end of the step is reported. glibc
// caches freed blocks and raises its own threshold for mmap, so freed activations would stay
// resident. So count_memory() fixes both thresholds (real/cpu/malloc_thresholds.h).
#pragma once

#include <c10/core/Device.h>

#include <cstdint>

namespace ferry::real::train {

// Call it once in a process, before the first tensor.
void count_memory();

// Returns the live bytes that the CPU allocator handed out since count_memory(); 0 before.
std::int64_t live_bytes();

// The present resident size, and its peak since the last reset (the present size if the kernel does
// not report the peak). 0 without /proc.
struct Resident {
  std::int64_t bytes = 0;
  std::int64_t peak_bytes = 0;
};
Resident resident();

// Measures the memory of one step, from construction on.
class StepMemory {
 public:
  explicit StepMemory(c10::Device device);
  std::int64_t peak_bytes() const;
  // Returns the most bytes that the device's caching allocator held; 0 on a CPU, which has none.
  std::int64_t reserved_bytes() const;
  std::int64_t rss_bytes() const;

 private:
  c10::Device device_;
  bool has_peak_;
};

}  // namespace ferry::real::train
