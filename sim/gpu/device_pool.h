// PyTorch's caching allocator: blocks of one device's memory, per stream, split and merged.
//
// Models c10/cuda/CUDACachingAllocator.cpp (2.11) with default settings: sizes in multiples of 512
// bytes; requests up to 1 MiB from 2 MiB segments, below 10 MiB from 20 MiB segments, larger ones
// from segments of their own in 2 MiB steps; best fit, ties by address; a freed block serves its
// own stream only. A block in use on other streams stays active when freed, until a query at a
// later allocation finds these streams past the free. Out of memory: wait for all such blocks, give
// every whole free segment back, and try once more.
//
// Invariants: blocks tile their segments; of two neighbours never both are free; reserved bytes are
// the segments'; no decision looks at a pointer (order is stream, size, address).
// Addresses are numbers from (device + 1) << 44 and are never used again by another segment.
//
// Not modelled: garbage collection, max_split_size, roundup_power2_divisions, private pools,
// expandable segments. The time that cudaMalloc and cudaFree take is the machine's matter.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "formats/stream_op.h"
#include "sim/gpu/pool_events.h"

namespace ferry::sim {

// "CUDA out of memory. ...", in PyTorch's words. All in bytes.
struct OutOfMemory : std::runtime_error {
  OutOfMemory(std::uint32_t device, std::int64_t requested, std::int64_t segment,
              std::int64_t total, std::int64_t allocated, std::int64_t reserved);
  std::int64_t requested_bytes;
  std::int64_t segment_bytes;  // the bytes that the message names
  std::int64_t total_bytes;
  std::int64_t free_bytes;
  std::int64_t allocated_bytes;
  std::int64_t reserved_bytes;
};

// PyTorch's format_size: "2.00 MiB".
std::string format_bytes(std::int64_t bytes);

// A piece of a segment. Belongs to its pool; valid from allocate() to free().
class Block {
 public:
  std::uint64_t address() const { return address_; }
  std::int64_t bytes() const { return bytes_; }  // rounded, with any unsplit rest
  std::int64_t requested_bytes() const { return requested_; }
  StreamId stream() const { return stream_; }
  Range range() const { return {address_, static_cast<std::uint64_t>(bytes_)}; }

 private:
  friend class DevicePool;
  std::uint64_t address_ = 0;
  std::int64_t bytes_ = 0;
  std::int64_t requested_ = 0;
  StreamId stream_{};
  bool small_ = false;
  bool allocated_ = false;
  std::uint32_t pending_ = 0;  // the number of events that hold it back
  Block* before_ = nullptr;    // its neighbours within the segment
  Block* after_ = nullptr;
  std::vector<StreamId> uses_;  // other streams that use it
};

struct DevicePoolStats {
  Gauge allocated_bytes;  // drops at free()
  Gauge active_bytes;     // drops when the block is free for reuse
  Gauge requested_bytes;  // the requested bytes of active_bytes
  Gauge reserved_bytes;   // bytes of segments
  std::int64_t num_alloc_retries = 0;
  std::int64_t num_ooms = 0;
  std::int64_t num_device_alloc = 0;  // calls of cudaMalloc
  std::int64_t num_device_free = 0;   // calls of cudaFree
};

class DevicePool {
 public:
  // `events` is not owned and must outlive the pool. capacity_bytes 0: unlimited.
  DevicePool(std::uint32_t device, std::int64_t capacity_bytes, PoolEvents& events);
  DevicePool(const DevicePool&) = delete;
  DevicePool& operator=(const DevicePool&) = delete;
  ~DevicePool();  // drops the tokens that are still out

  // Null for 0 bytes, since such a tensor never reaches PyTorch's allocator. Throws OutOfMemory,
  // and LimitReached if the segments of the run exceed 16 TiB in all.
  Block* allocate(std::int64_t bytes, StreamId stream);
  [[noreturn]] void refuse(std::int64_t bytes);    // fails as if memory was full
  void free(Block* block);                         // null is allowed
  void record_use(Block* block, StreamId stream);  // PyTorch's record_stream

  const DevicePoolStats& stats() const { return stats_; }
  void reset_peaks();
  std::int64_t segments() const { return segments_; }
  std::int64_t free_blocks() const;  // including whole segments

 private:
  struct Key {
    StreamId stream;
    std::int64_t bytes;
    std::uint64_t address;
    Block* block;
    bool operator<(const Key& other) const;
  };
  using FreeBlocks = std::set<Key>;
  struct Deferred {
    PoolToken token;
    Block* block;
  };

  Block* take_free(std::int64_t bytes, StreamId stream);
  Block* make_segment(std::int64_t bytes, StreamId stream);
  void split(Block* block, std::int64_t bytes);
  void put_free(Block* block);
  void free_now(Block* block);
  void merge(Block* block, Block* neighbour);
  void poll();
  void settle(const Deferred& deferred);
  void release_cached();
  Block* new_block();
  void delete_block(Block* block);
  FreeBlocks& free_blocks_like(const Block* block) { return block->small_ ? small_ : large_; }

  std::uint32_t device_;
  std::int64_t capacity_bytes_;
  PoolEvents& events_;
  std::uint64_t next_address_;
  std::int64_t segments_ = 0;
  FreeBlocks small_, large_;
  FreeBlocks::node_type spare_;                        // saves the next insertion one allocation
  std::map<StreamId, std::deque<Deferred>> deferred_;  // by the stream that still uses the block
  std::int64_t deferred_count_ = 0;
  std::deque<Block> blocks_;
  std::vector<Block*> unused_blocks_;
  DevicePoolStats stats_;
};

}  // namespace ferry::sim
