// A piece of a segment of the caching allocator.
//
// A block belongs to its pool (sim/gpu/device_pool.h). For users of the pool it is valid from
// allocate() to free(). Blocks tile their segment. In an expandable segment a block may be
// unmapped: it has addresses but no memory, and nobody uses it.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/stream_op.h"

namespace ferry::sim {

// The memory of one cudaMalloc, or the addresses that an expandable segment has reserved.
struct Segment {
  std::uint64_t address = 0;
  std::int64_t bytes = 0;
  StreamId stream{};
  bool small = false;       // in the pool for requests up to 1 MiB
  bool expandable = false;  // its memory is mapped piece by piece
  std::int64_t number = 0;  // number in its pool, in the order of creation
};

class Block {
 public:
  std::uint64_t address() const { return address_; }
  std::int64_t bytes() const { return bytes_; }  // rounded up, with a rest that was not split off
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
  std::int64_t requested_ = 0;  // stays after a free, as in PyTorch
  bool allocated_ = false;
  bool mapped_ = true;
  std::uint32_t pending_ = 0;  // number of events that delay its reuse
  std::int64_t searches_ = 0;  // the count of searches of its list when it was put there
  std::int64_t rank_ = 0;      // of free blocks of one size, the lowest rank is taken
  Block* before_ = nullptr;    // its neighbours within the segment
  Block* after_ = nullptr;
  std::vector<StreamId> uses_;  // other streams that use it
};

}  // namespace ferry::sim
