// The order in which the segments were made that were there when a snapshot's trace began. The
// snapshot does not say it, and since 2.13 PyTorch takes the block of the oldest one of several
// that are equally large (EqualBlocks::kOldestSegment).
//
// At first it is the order of their addresses: upwards, or downwards if the device put most of the
// trace's segments so. A replay that differs tells of two segments which is older; with what was
// learned so it is tried again.
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
  // `segments` by address, as they were when the trace began.
  SegmentOrder(std::vector<MemorySegment> segments, const std::vector<MemoryEvent>& trace);

  // The oldest first.
  std::vector<MemorySegment> segments() const;

  // PyTorch took the block at one address, and the one at the other was as large. False: nothing
  // is learned by it, as they are of one segment or of one that is newer, or it cannot be so after
  // what was learned before.
  bool learn(std::uint64_t older, std::uint64_t newer);

 private:
  std::size_t segment_of(std::uint64_t address) const;  // segments_.size(): of none of them
  bool is_older(std::size_t one, std::size_t other) const;

  std::vector<MemorySegment> segments_;
  std::set<std::pair<std::size_t, std::size_t>> older_;  // than the second
};

}  // namespace ferry::sim
