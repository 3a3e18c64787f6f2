// A piece of a segment of the caching allocator.
//
// Belongs to its pool (sim/gpu/device_pool.h); to the pool's users it is valid from allocate() to
// free(). Pieces tile their segment. One of an expandable segment may be unmapped: addresses
// without memory, which are nobody's.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/stream_op.h"

namespace ferry::sim {

// One cudaMalloc, or the addresses that an expandable segment has reserved.
struct Segment {
  std::uint64_t address = 0;
  std::int64_t bytes = 0;
  StreamId stream{};
  bool small = false;       // of the pool for requests up to 1 MiB
  bool expandable = false;  // its memory is mapped piece by piece
  std::int64_t number = 0;  // of the pool's, in the order in which they were made
};

class Block {
 public:
  std::uint64_t address() const { return address_; }
  std::int64_t bytes() const { return bytes_; }  // rounded, with any unsplit rest
  std::int64_t requested_bytes() const { return requested_; }
  StreamId stream() const { return segment_->stream; }
  const Segment& segment() const { return *segment_; }
  Range range() const { return {address_, static_cast<std::uint64_t>(bytes_)}; }

 private:
  friend class DevicePool;
  friend class FreeBlocks;

  bool is_split() const { return before_ != nullptr || after_ != nullptr; }
  bool is_free() const { return !allocated_ && pending_ == 0; }  // or unmapped
  std::uint64_t end() const { return address_ + static_cast<std::uint64_t>(bytes_); }

  const Segment* segment_ = nullptr;
  std::uint64_t address_ = 0;
  std::int64_t bytes_ = 0;
  std::int64_t requested_ = 0;  // kept when it is freed, as PyTorch does
  bool allocated_ = false;
  bool mapped_ = true;
  std::uint32_t pending_ = 0;  // the number of events that hold it back
  std::int64_t searches_ = 0;  // of its pool, when it was put there
  std::int64_t rank_ = 0;      // among free blocks of its size: the lowest is taken
  Block* before_ = nullptr;    // its neighbours within the segment
  Block* after_ = nullptr;
  std::vector<StreamId> uses_;  // other streams that use it
};

}  // namespace ferry::sim
