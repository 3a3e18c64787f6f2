// Measures a step's memory: the peaks of the device tier's live bytes and of the resident size.
//
// On a CPU the device tier is what LibTorch's CPU allocator has handed out: count_memory() puts a
// counting one in its place (real/cpu/counting_allocator.h). On CUDA the caching allocator counts
// by itself.
//
// The resident size is the kernel's. Writing 5 to /proc/self/clear_refs makes its peak that of a
// step; where that is refused the size at the step's end is reported. glibc keeps freed blocks and
// raises its own threshold for mmap, so that freed activations would stay resident:
// count_memory() fixes both thresholds (real/cpu/malloc_thresholds.h).
#pragma once

#include <c10/core/Device.h>

#include <cstdint>

namespace ferry::real::train {

// Call it once in a process, before the first tensor.
void count_memory();

// Live bytes that the CPU allocator handed out since count_memory(); 0 before.
std::int64_t live_bytes();

// The present size, and its peak since the last reset if the kernel tells (else the present size).
// 0 without /proc.
struct Resident {
  std::int64_t bytes = 0;
  std::int64_t peak_bytes = 0;
};
Resident resident();

// The memory of one step, from construction on.
class StepMemory {
 public:
  explicit StepMemory(c10::Device device);
  std::int64_t peak_bytes() const;
  // The most that the device's caching allocator held; 0 on a CPU, which has none.
  std::int64_t reserved_bytes() const;
  std::int64_t rss_bytes() const;

 private:
  c10::Device device_;
  bool has_peak_;
};

}  // namespace ferry::real::train
