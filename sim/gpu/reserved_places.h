// Where the expandable segments of a replayed trace begin, by stream and pool, and how many
// addresses each would need for the requests that may have found too few.
//
// A trace says where memory was mapped, and not which addresses were reserved: an allocator whose
// segment has too few left for a request reserves more, even if mapping fails then.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "formats/memory_snapshot.h"

namespace ferry::sim {

class ReservedPlaces {
 public:
  // Each has so many addresses; 0: enough for all.
  explicit ReservedPlaces(std::int64_t bytes) : bytes_(static_cast<std::uint64_t>(bytes)) {}

  void add(std::uint64_t stream, bool small, std::uint64_t address) {
    places_[{stream, small}].push_back(address);
  }
  // Whether one of the stream's segments has the address already.
  bool contains(std::uint64_t stream, bool small, std::uint64_t address) const;

  // A request for so many bytes, of a pool with these mapped parts. Streams are numbered in the
  // trace and in the pool.
  void note_request(std::uint64_t stream, bool small, std::int64_t bytes, std::uint64_t in_pool,
                    const std::vector<MemorySegment>& parts);
  const std::set<std::int64_t>& needs() const { return needs_; }

 private:
  std::uint64_t bytes_;
  std::map<std::pair<std::uint64_t, bool>, std::vector<std::uint64_t>> places_;
  std::set<std::int64_t> needs_;
};

}  // namespace ferry::sim
