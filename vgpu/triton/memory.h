// What a running kernel does with memory: finds out of bounds, and collects what is touched.
//
// The memory of a launch is a few ranges, the storages of its tensors. A Memory checks each access
// against them, and in a slice (machine.h) it notes the ranges of all reads and all writes.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/stream_op.h"

namespace ferry::vgpu::triton {

// A set of bytes, as ranges. Adding neighbours one after the other costs next to nothing.
class Bytes {
 public:
  void add(std::uint64_t address, std::uint64_t bytes);
  // Sorted and apart from each other.
  std::vector<Range> ranges();

 private:
  void settle();  // sorts and joins

  std::vector<Range> ranges_;
  std::size_t settles_at_ = 1 << 16;
};

class Memory {
 public:
  // `ranges` is sorted and must outlive the object.
  explicit Memory(const std::vector<Range>& ranges) : ranges_(ranges) {}

  // Returns whether these bytes lie in one of the ranges.
  bool contains(std::uint64_t address, std::uint64_t bytes);
  // The range that begins last at or before the address, or null.
  const Range* before(std::uint64_t address) const;

  Bytes reads;
  Bytes writes;

 private:
  const std::vector<Range>& ranges_;
  Range latest_;  // most accesses are near the one before
};

}  // namespace ferry::vgpu::triton
