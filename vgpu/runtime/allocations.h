// The blocks of memory that the runtime has given out, keyed by their start address.
//
// These are plain values. The parts that own such a map say what guards it (device_memory.h,
// pinned_memory.h). Blocks do not overlap. device_memory.h merges pieces of virtual memory that are
// mapped side by side on one device into one entry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>

namespace ferry::vgpu {

struct Allocation {
  std::size_t bytes = 0;
  int device = 0;
  bool mapped = false;  // one or several adjacent mapped pieces of virtual memory
};
using Allocations = std::map<std::uintptr_t, Allocation>;

// Returns the block that contains all of these bytes, or null.
inline const Allocation* find_allocation(const Allocations& in, const void* address,
                                         std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  const auto after = in.upper_bound(begin);
  if (after == in.begin()) return nullptr;
  const auto& [start, allocation] = *std::prev(after);
  return begin + bytes <= start + allocation.bytes ? &allocation : nullptr;
}

// Rounds up to whole pages, the unit in which the machine gives out memory.
inline constexpr std::size_t pages(std::size_t bytes) { return (bytes + 4095) / 4096 * 4096; }

}  // namespace ferry::vgpu
