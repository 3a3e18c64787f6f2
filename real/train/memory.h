// What a step needs of memory: the peak of the device tier's live bytes, and of the resident size.
//
// On a CPU the device tier is what LibTorch's CPU allocator has handed out: count_memory() puts a
// counting one in its place, which allocates as LibTorch's does and keeps exact sizes. On CUDA the
// caching allocator counts by itself.
//
// The resident size is the kernel's. Writing 5 to /proc/self/clear_refs makes its peak that of a
// step; where that is refused the size at the step's end is reported. glibc keeps freed blocks and
// raises its own threshold for mmap, so that freed activations would stay resident:
// count_memory() fixes both thresholds (real/cpu/malloc_thresholds.h).
#pragma once

#include <c10/core/Device.h>

#include <cstdint>

namespace ferry::real::train {

// Once in a process, before the first tensor.
void count_memory();

// Is told of each block that the CPU allocator hands out, when it is there, and of each that comes
// back, before it is freed. On any thread; must not allocate tensors.
class MemoryObserver {
 public:
  virtual ~MemoryObserver() = default;
  virtual void allocated(const void* block, std::int64_t bytes) noexcept = 0;
  virtual void freed(const void* block) noexcept = 0;
};
// Null: nobody. A thread that is at it may still tell the one before: observers are not destroyed.
void observe_memory(MemoryObserver* observer);

// Live bytes that the CPU allocator handed out since count_memory(); 0 before.
std::int64_t live_bytes();

// Now, and its peak since the last reset where the kernel tells (else now). 0 where there is no
// /proc.
struct Resident {
  std::int64_t bytes = 0;
  std::int64_t peak_bytes = 0;
};
Resident resident();

// One step's: from its making on.
class StepMemory {
 public:
  explicit StepMemory(c10::Device device);
  std::int64_t peak_bytes() const;
  // What the device's caching allocator held for it, at its most; 0 on a CPU, where none does.
  std::int64_t reserved_bytes() const;
  std::int64_t rss_bytes() const;

 private:
  c10::Device device_;
  bool has_peak_;
};

}  // namespace ferry::real::train
