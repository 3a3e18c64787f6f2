// Notes where the expandable segments of a replayed trace begin, by stream and pool, and how many
// addresses each would need for the requests that may have found too few.
//
// A trace tells where memory was mapped, but not which addresses were reserved. If a segment has
// too few addresses left for a request, the allocator reserves more, even if mapping then fails. If
// a replay (snapshot_replay.h) differs from its trace, it is repeated with fewer addresses, until
// none of needs() is left to try.
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
  // Each segment has so many addresses; 0: enough for all requests.
  explicit ReservedPlaces(std::int64_t bytes) : bytes_(static_cast<std::uint64_t>(bytes)) {}

  void add(std::uint64_t stream, bool small, std::uint64_t address) {
    places_[{stream, small}].push_back(address);
  }
  // True if the address is in one of the stream's segments.
  bool contains(std::uint64_t stream, bool small, std::uint64_t address) const;

  // Notes a request for so many bytes in a pool with these mapped parts. `stream` is the stream's
  // number in the trace, and `in_pool` its number in the pool.
  void note_request(std::uint64_t stream, bool small, std::int64_t bytes, std::uint64_t in_pool,
                    const std::vector<MemorySegment>& parts);
  const std::set<std::int64_t>& needs() const { return needs_; }

 private:
  std::uint64_t bytes_;
  std::map<std::pair<std::uint64_t, bool>, std::vector<std::uint64_t>> places_;
  std::set<std::int64_t> needs_;
};

}  // namespace ferry::sim
