#include "sim/gpu/reserved_places.h"

#include <algorithm>

namespace ferry::sim {
namespace {

// Returns where the used part of the segment that begins at `begin` ends. A free part at its end
// may still grow.
std::uint64_t end_of_use(std::uint64_t begin, const std::vector<std::uint64_t>& places, bool small,
                         std::uint64_t stream, const std::vector<MemorySegment>& parts) {
  std::uint64_t end = begin;
  for (const MemorySegment& part : parts) {
    const auto another = [&](std::uint64_t other) {
      return other > begin && other <= part.address;
    };
    if (!part.expandable || part.small != small || part.stream != stream || part.address < begin ||
        std::any_of(places.begin(), places.end(), another)) {
      continue;
    }
    const MemoryBlock& last = part.blocks.back();
    const bool free = last.state == BlockState::kInactive;
    end = last.address + (free ? 0 : static_cast<std::uint64_t>(last.bytes));
  }
  return end;
}

}  // namespace

bool ReservedPlaces::contains(std::uint64_t stream, bool small, std::uint64_t address) const {
  const auto places = places_.find({stream, small});
  if (places == places_.end() || bytes_ == 0) return false;
  return std::any_of(places->second.begin(), places->second.end(), [&](std::uint64_t begin) {
    return address >= begin && address - begin < bytes_;
  });
}

void ReservedPlaces::note_request(std::uint64_t stream, bool small, std::int64_t bytes,
                                  std::uint64_t in_pool, const std::vector<MemorySegment>& parts) {
  const auto places = places_.find({stream, small});
  if (places == places_.end()) return;
  for (const std::uint64_t begin : places->second) {
    const std::uint64_t end = end_of_use(begin, places->second, small, in_pool, parts);
    needs_.insert(static_cast<std::int64_t>(end - begin) + bytes);
  }
}

}  // namespace ferry::sim
