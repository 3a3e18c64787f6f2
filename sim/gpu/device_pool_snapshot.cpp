// Lists a pool's segments as PyTorch's snapshot does, for memory_recorder.h, and lets a pool begin
// with such segments, for a replay that starts in the middle of a trace (snapshot_replay.h).
#include <algorithm>

#include "sim/gpu/device_pool.h"
#include "sim/gpu/device_pool_sizes.h"

namespace ferry::sim {

std::vector<MemorySegment> DevicePool::snapshot() const {
  std::vector<const Block*> blocks;
  for (const Block& block : blocks_) {
    if (block.segment_ != nullptr && block.mapped_) blocks.push_back(&block);
  }
  std::sort(blocks.begin(), blocks.end(),
            [](const Block* a, const Block* b) { return a->address_ < b->address_; });
  std::vector<MemorySegment> segments;
  for (const Block* block : blocks) {
    if (block->before_ == nullptr || !block->before_->mapped_) {
      const Segment& segment = block->segment();
      segments.push_back({device_,
                          block->address_,
                          0,
                          static_cast<std::uint64_t>(segment.stream),
                          segment.small,
                          segment.expandable,
                          false,
                          {}});
    }
    const BlockState state = block->allocated_     ? BlockState::kAllocated
                             : block->pending_ > 0 ? BlockState::kPendingFree
                                                   : BlockState::kInactive;
    segments.back().bytes += block->bytes_;
    segments.back().blocks.push_back({block->address_, block->bytes_, block->requested_, state});
  }
  return segments;
}

std::vector<Block*> DevicePool::adopt(const MemorySegment& wanted) {
  require(!wanted.expandable, "an expandable segment cannot be adopted");
  const StreamId stream{static_cast<std::uint32_t>(wanted.stream)};
  Block* block = new_block(new_segment({wanted.address, wanted.bytes, stream, wanted.small}),
                           wanted.address, wanted.bytes);
  stats_.reserved_bytes.add(wanted.bytes);
  std::vector<Block*> active;
  std::int64_t left = wanted.bytes;
  for (const MemoryBlock& piece : wanted.blocks) {
    require(piece.bytes > 0 && piece.bytes <= left, "blocks fill their segment");
    Block* rest = piece.bytes < left ? split(block, piece.bytes) : nullptr;
    left -= piece.bytes;
    block->requested_ = piece.requested_bytes;
    if (piece.state == BlockState::kInactive) {
      free_blocks_of(block).put(block);
    } else {
      // A block that is not free yet will be freed by its owner, which knows the streams that still
      // use it.
      block->allocated_ = true;
      active.push_back(block);
      stats_.allocated_bytes.add(block->bytes_);
      stats_.active_bytes.add(block->bytes_);
      stats_.requested_bytes.add(block->requested_);
    }
    block = rest;
  }
  require(left == 0, "blocks fill their segment");
  return active;
}

}  // namespace ferry::sim
