// The order in which those segments were made that existed when a snapshot's trace began. The
// snapshot does not contain it. It matters because, since 2.13, PyTorch takes from equally large
// blocks the one in the oldest segment (EqualBlocks::kOldestSegment).
//
// At first it is the order of their addresses: upwards, or downwards if the device placed most of
// the trace's segments so. If a replay differs from the trace, that shows which of two segments is
// older, and the replay is tried again with this knowledge.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "formats/memory_snapshot.h"

namespace ferry::sim {

class SegmentOrder {
 public:
  // `segments` are in the order of their addresses, as they were when the trace began.
  SegmentOrder(std::vector<MemorySegment> segments, const std::vector<MemoryEvent>& trace);

  // Returns the segments, the oldest first.
  std::vector<MemorySegment> segments() const;

  // PyTorch took the block at `older`, though the one at `newer` was as large. Returns false if
  // this teaches nothing: they are in one segment, or one is in a newer segment than those known,
  // or it was learned already, or it contradicts what was learned before.
  bool learn(std::uint64_t older, std::uint64_t newer);

 private:
  std::size_t segment_of(std::uint64_t address) const;  // segments_.size(): in none
  bool is_older(std::size_t one, std::size_t other) const;

  std::vector<MemorySegment> segments_;
  std::set<std::pair<std::size_t, std::size_t>> older_;  // the first is older than the second
};

}  // namespace ferry::sim
