// Expandable segments. Each stream and pool reserves addresses once, for an eighth more than the
// device's memory. Memory is mapped in pages as requests come, and unmapped when memory is short.
// Models find_expandable_block, map_block, unmap_block and try_allocate_expandable_block of
// c10/cuda/CUDACachingAllocator.cpp (2.11). A page is as large as a segment of the pool: 2 MiB in
// the small one, large_segment_size_mb in the other.
#include <algorithm>
#include <utility>

#include "sim/gpu/device_pool.h"
#include "sim/gpu/device_pool_sizes.h"

namespace ferry::sim {
namespace {

// Addresses that are reserved if the device's memory is unlimited (more for a larger request).
constexpr std::int64_t kUnlimitedReservation = std::int64_t{1} << 39;

}  // namespace

std::int64_t DevicePool::page_bytes(bool small) const {
  return small ? kSmallSegment : options_.conf.large_segment_bytes;
}

// Returns null if the device has no memory for all of it. What was mapped until then stays mapped.
Block* DevicePool::grow(std::int64_t rounded, StreamId stream) {
  Block* block = find_growing(rounded, stream);
  if (block == nullptr) block = reserve(rounded, stream);
  // From here on, free and unmapped pieces follow each other, and they are enough.
  if (!block->mapped_ && !map(block, std::min(block->bytes_, rounded))) return nullptr;
  while (block->bytes_ < rounded) {
    Block* next = block->after_;  // map() merges the block into it
    if (!map(next, std::min(rounded - block->bytes_, next->bytes_))) return nullptr;
    block = next;
  }
  free_blocks_of(block).remove(block);
  return block;
}

// Returns the lowest piece from which on enough bytes are free or unmapped; null: none.
Block* DevicePool::find_growing(std::int64_t rounded, StreamId stream) const {
  const auto suffices = [&](const Block* block) {
    std::int64_t bytes = 0;
    for (; bytes < rounded && block != nullptr && block->is_free(); block = block->after_) {
      bytes += block->bytes_;
    }
    return bytes >= rounded;
  };
  // A free block may lie right before the unmapped one.
  const auto first = [](Block* unmapped) {
    Block* before = unmapped->before_;
    return before != nullptr && before->is_free() ? before : unmapped;
  };
  const FreeBlocks& free_blocks = rounded <= kSmallSize ? small_ : large_;
  Block* found =
      free_blocks.find_unmapped(stream, [&](Block* unmapped) { return suffices(first(unmapped)); });
  return found != nullptr ? first(found) : nullptr;
}

// Reserves the addresses of a new segment, and returns its only block, which is unmapped.
Block* DevicePool::reserve(std::int64_t rounded, StreamId stream) {
  const bool small = rounded <= kSmallSize;
  const std::int64_t total = options_.total_bytes;
  const std::int64_t wanted =
      total > 0 ? total + total / 8 : std::max(kUnlimitedReservation, rounded);
  const std::int64_t bytes = round_up(wanted, page_bytes(small));
  const std::uint64_t address = reserve_addresses(bytes);
  Block* block = new_block(new_segment({address, bytes, stream, small, true}), address, bytes);
  block->mapped_ = false;
  free_blocks_for(rounded).put_unmapped(block);
  return block;
}

bool DevicePool::would_reuse(std::int64_t bytes, StreamId stream) const {
  const std::int64_t size = rounded(bytes);
  const FreeBlocks& free_blocks = size <= kSmallSize ? small_ : large_;
  if (free_blocks.find(size, stream, options_.conf) != nullptr) return true;
  if (!options_.conf.expandable_segments) return false;
  const Block* growing = find_growing(size, stream);
  return growing != nullptr && growing->mapped_ && growing->bytes_ >= size;
}

// Maps the first pages of an unmapped piece, and merges them with their free neighbours. Returns
// false, without doing anything, if the device has no room for them.
bool DevicePool::map(Block* block, std::int64_t bytes) {
  FreeBlocks& free_blocks = free_blocks_of(block);
  const std::int64_t mapped = round_up(bytes, page_bytes(block->segment().small));
  if (!has_room(mapped)) return false;
  free_blocks.remove_unmapped(block);
  block->mapped_ = true;
  const std::uint64_t address = block->address_;
  if (mapped < block->bytes_) {
    Block* rest = split(block, mapped);
    rest->mapped_ = false;
    free_blocks.put_unmapped(rest);
  }
  merge(block, block->before_);
  merge(block, block->after_);
  free_blocks.put(block);
  stats_.reserved_bytes.add(mapped);
  ++stats_.num_device_alloc;
  stats_.driver.pages_mapped += mapped / page_bytes(block->segment().small);
  if (trace_ != nullptr) {
    trace_->on(
        {MemoryAction::kSegmentMap, address, mapped, block->stream(), block->segment().address});
  }
  return true;
}

// Unmaps the pages that a free block covers completely. A segment without mapped pages is deleted.
void DevicePool::unmap(Block* block) {
  FreeBlocks& free_blocks = free_blocks_of(block);
  const Segment* segment = block->segment_;
  const auto page = static_cast<std::uint64_t>(page_bytes(segment->small));
  const std::uint64_t begin =
      segment->address + (block->address_ - segment->address + page - 1) / page * page;
  const std::uint64_t end = segment->address + (block->end() - segment->address) / page * page;
  if (begin < end) {
    free_blocks.remove(block);
    if (block->address_ < begin) {
      Block* head = block;
      block = split(head, static_cast<std::int64_t>(begin - head->address_));
      std::swap(block->rank_, head->rank_);  // to PyTorch, the head is the newer block
      free_blocks.put(head);
    }
    if (end < block->end()) {
      free_blocks.put(split(block, static_cast<std::int64_t>(end - block->address_)));
    }
    block->mapped_ = false;
    const std::int64_t bytes = block->bytes_;
    merge(block, block->before_);
    merge(block, block->after_);
    free_blocks.put_unmapped(block);
    stats_.reserved_bytes.add(-bytes);
    ++stats_.num_device_free;
    stats_.driver.pages_unmapped += bytes / page_bytes(segment->small);
    if (trace_ != nullptr) {
      trace_->on({MemoryAction::kSegmentUnmap, begin, bytes, segment->stream, segment->address});
    }
  }
  if (block->is_split() || block->mapped_) return;
  free_blocks.remove_unmapped(block);
  delete_block(block);
  delete_segment(segment);
}

}  // namespace ferry::sim
