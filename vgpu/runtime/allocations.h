// The pieces of memory that the runtime has given out, by the addresses where they begin.
//
// These are plain values, and the parts that own such a map say what guards it (device_memory.h,
// pinned_memory.h). No two pieces meet, but those that are mapped and stand side by side are one
// (virtual_memory.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>

namespace ferry::vgpu {

struct Allocation {
  std::size_t bytes = 0;
  int device = 0;
  bool mapped = false;  // addresses that pieces are mapped to, one behind the other
};
using Allocations = std::map<std::uintptr_t, Allocation>;

// The one that has all of these bytes, or null.
inline const Allocation* find_allocation(const Allocations& in, const void* address,
                                         std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  const auto after = in.upper_bound(begin);
  if (after == in.begin()) return nullptr;
  const auto& [start, allocation] = *std::prev(after);
  return begin + bytes <= start + allocation.bytes ? &allocation : nullptr;
}

// Memory is taken of the machine in pages.
inline constexpr std::size_t pages(std::size_t bytes) { return (bytes + 4095) / 4096 * 4096; }

}  // namespace ferry::vgpu
