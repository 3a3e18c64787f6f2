// Decides what the pool gives back to the device when memory is short, and in which order. Models
// garbage_collect_cached_blocks, release_available_cached_blocks and release_cached_blocks of
// c10/cuda/CUDACachingAllocator.cpp (2.11).
#include <algorithm>
#include <vector>

#include "sim/gpu/device_pool.h"
#include "sim/gpu/device_pool_sizes.h"

namespace ferry::sim {

// Frees whole large segments that were not used for long, until the reserved bytes are below the
// threshold. Each pass frees those at least as old as the average of what is left.
void DevicePool::collect_garbage() {
  const auto threshold = static_cast<std::int64_t>(options_.conf.garbage_collection_threshold *
                                                   static_cast<double>(allowed_bytes_.value_or(0)));
  if (stats_.reserved_bytes.current <= threshold) return;
  const std::int64_t target = stats_.reserved_bytes.current - threshold;
  std::vector<Block*> left;
  std::int64_t ages = 0;
  large_.for_each([&](Block* block) {
    if (block->is_split()) return;
    left.push_back(block);
    ages += large_.age(block);
  });
  std::int64_t reclaimed = 0;
  while (reclaimed < target && !left.empty()) {
    // As in PyTorch, all blocks of a pass are compared with the average age at its beginning. The
    // blocks that it frees lower the average of the next pass only.
    const std::int64_t average_of = ages;
    const auto average_by = static_cast<std::int64_t>(left.size());
    std::vector<Block*> younger;
    for (Block* block : left) {
      const std::int64_t age = large_.age(block);
      if (block->segment().expandable || age * average_by < average_of) {
        younger.push_back(block);
        continue;
      }
      reclaimed += block->bytes_;
      ages -= age;
      large_.remove(block);
      release(block);
    }
    if (younger.size() == left.size()) return;
    left = std::move(younger);
  }
}

// With max_split_size: returns the one block that is large enough, or else the largest blocks until
// they are enough together, or all of them.
std::vector<Block*> DevicePool::oversize_for(std::int64_t rounded, StreamId stream) const {
  const auto& most = options_.conf.max_split_bytes;
  if (!most) return {};
  const FreeBlocks& free_blocks = rounded <= kSmallSize ? small_ : large_;
  const std::int64_t wanted = std::max(rounded, *most);
  Block* one = free_blocks.first_of(stream, wanted);
  if (one != nullptr && !one->segment().expandable) return {one};
  std::vector<Block*> several;
  std::int64_t bytes = 0;
  for (Block* block : free_blocks.largest_first(stream, *most, wanted)) {
    if (bytes >= wanted) break;
    if (block->segment().expandable) continue;
    bytes += block->bytes_;
    several.push_back(block);
  }
  return several;
}

// Returns true if the released blocks are enough.
bool DevicePool::release_oversize(std::int64_t rounded, StreamId stream) {
  std::int64_t released = 0;
  for (Block* block : oversize_for(rounded, stream)) {
    released += block->bytes_;
    free_blocks_of(block).remove(block);
    release(block);
  }
  return options_.conf.max_split_bytes &&
         released >= std::max(rounded, *options_.conf.max_split_bytes);
}

const Block* DevicePool::would_release(std::int64_t bytes, StreamId stream) const {
  const std::vector<Block*> blocks = oversize_for(rounded(bytes), stream);
  return blocks.empty() ? nullptr : blocks.front();
}

void DevicePool::empty_cache() { release_cached(); }

// Waits for every block that is in use elsewhere. Then gives back all whole segments and pages,
// large ones first.
void DevicePool::release_cached() {
  ++stats_.num_sync_all_streams;
  for (auto& [stream, queue] : deferred_) {
    while (!queue.empty()) {
      const Deferred deferred = queue.front();
      queue.pop_front();
      events_.wait(deferred.token);
      settle(deferred);
    }
  }
  release_cached(large_);
  release_cached(small_);
}

// Gives back free blocks in order of stream, size and address.
void DevicePool::release_cached(FreeBlocks& free_blocks) {
  std::vector<Block*> whole;
  std::vector<Block*> mapped;
  free_blocks.for_each([&](Block* block) {
    if (block->segment().expandable) {
      mapped.push_back(block);
    } else if (!block->is_split()) {
      whole.push_back(block);
    }
  });
  for (Block* block : whole) {
    free_blocks.remove(block);
    release(block);
  }
  for (Block* block : mapped) unmap(block);
}

// Gives back a whole segment. Its block must be in no list.
void DevicePool::release(Block* block) {
  ++stats_.num_device_free;
  ++stats_.driver.frees;
  stats_.driver.free_bytes += block->bytes_;
  tell(MemoryAction::kSegmentFree, block, block->bytes_);
  stats_.reserved_bytes.add(-block->bytes_);
  delete_segment(block->segment_);
  delete_block(block);
}

}  // namespace ferry::sim
