// The free blocks for small or for large requests, ordered by stream, then size, then rank
// (EqualBlocks), then address.
//
// Models BlockPool and get_free_block of c10/cuda/CUDACachingAllocator.cpp (2.10 to 2.15): takes
// the smallest block that is large enough and, of equal ones, that with the lowest rank. A block at
// the growing end of an expandable segment counts with the size that it can reach. PyTorch goes on
// while the next block is smaller in this sense, so it does not find the true minimum, and neither
// does this code.
//
// The age of a block is the number of searches since it came here. Garbage collection frees old
// ones.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "formats/alloc_conf.h"
#include "sim/gpu/block.h"

namespace ferry::sim {

class FreeBlocks {
 public:
  void put(Block* block);
  void remove(Block* block);
  // Takes out the block for a request of so many rounded bytes, and returns it; null: none.
  Block* take(std::int64_t bytes, StreamId stream, const AllocConf& conf);
  const Block* find(std::int64_t bytes, StreamId stream, const AllocConf& conf) const;

  void count_search() { ++searches_; }
  std::int64_t age(const Block* block) const { return searches_ - block->searches_; }

  // Returns the stream's first block of at least so many bytes; null: none.
  Block* first_of(StreamId stream, std::int64_t bytes) const;
  // Returns the stream's blocks of at least `least` bytes and less than `end`, the largest first.
  std::vector<Block*> largest_first(StreamId stream, std::int64_t least, std::int64_t end) const;

  std::size_t size() const { return blocks_.size(); }
  template <class Call>
  void for_each(Call&& call) const {
    for (const Key& key : blocks_) call(key.block);
  }

  // Unmapped pieces of expandable segments, by stream and address.
  void put_unmapped(Block* block) { unmapped_.insert(key_of_unmapped(block)); }
  void remove_unmapped(Block* block) { unmapped_.erase(key_of_unmapped(block)); }
  // Returns the stream's first unmapped piece for which `holds` is true; null: none.
  template <class Holds>
  Block* find_unmapped(StreamId stream, Holds&& holds) const {
    for (auto at = unmapped_.lower_bound({stream, 0, 0, 0, nullptr});
         at != unmapped_.end() && at->stream == stream; ++at) {
      if (holds(at->block)) return at->block;
    }
    return nullptr;
  }

 private:
  struct Key {
    StreamId stream;
    std::int64_t bytes;
    std::int64_t rank;
    std::uint64_t address;
    Block* block;
    bool operator<(const Key& other) const;
  };
  using Keys = std::set<Key>;

  static Key key_of(Block* block) {
    return {block->stream(), block->bytes_, block->rank_, block->address_, block};
  }
  static Key key_of_unmapped(Block* block) {
    return {block->stream(), 0, 0, block->address_, block};
  }
  Keys::const_iterator search(std::int64_t bytes, StreamId stream, const AllocConf& conf) const;

  Keys blocks_;
  Keys unmapped_;
  Keys::node_type spare_;  // saves the next insertion one allocation
  std::int64_t searches_ = 0;
};

}  // namespace ferry::sim
