// PyTorch's caching allocator: blocks of one device's memory, per stream, split and merged.
//
// Models c10/cuda/CUDACachingAllocator.cpp (2.10 to 2.15) with its options (formats/alloc_conf.h):
// sizes in multiples of 512 bytes, or rounded up to parts of powers of two; requests up to 1 MiB
// from 2 MiB segments, below 10 MiB from 20 MiB segments, larger ones from segments of their own in
// 2 MiB steps; best fit, ties by EqualBlocks; a freed block serves its own stream only. A block in
// use on other streams stays active when freed, until a query at a later allocation finds these
// streams past the free. With expandable segments (device_pool_expandable.cpp) a stream has one
// segment a pool, whose memory is mapped as it grows. Where memory is short
// (device_pool_release.cpp): what is old is collected, large blocks are given back; then it waits
// for all blocks that are in use elsewhere, gives every whole free segment back, and tries once
// more.
//
// Invariants: blocks tile their segments; of two neighbours never both are free; reserved bytes are
// the segments'; no decision looks at a pointer (order is stream, size, rank, address). Addresses
// are numbers from (device + 1) << 44, which segments take from the top down
// (formats/segment_addresses.h), those of expandable segments from 1 << 57, upwards. None is used
// again by another segment.
//
// tests/vgpu/allocator holds it against PyTorch's own, operation by operation. The time that
// calls of the driver take is the machine's matter. Not modelled: private pools, CUDA graphs.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "formats/alloc_conf.h"
#include "formats/segment_addresses.h"
#include "formats/stream_op.h"
#include "sim/gpu/block.h"
#include "sim/gpu/driver_times.h"
#include "sim/gpu/free_blocks.h"
#include "sim/gpu/out_of_memory.h"
#include "sim/gpu/pool_events.h"
#include "sim/gpu/pool_trace.h"

namespace ferry::sim {

struct DevicePoolOptions {
  std::int64_t total_bytes = 0;    // the device's, as PyTorch reports them; 0: unlimited
  std::int64_t context_bytes = 0;  // of these, what no segment gets
  AllocConf conf;
  // For a replay of what another device did; none: as total_bytes and conf say.
  std::function<bool(std::int64_t)> has_room = nullptr;  // whether it has so many more bytes
  std::function<std::uint64_t()> place = nullptr;  // of the next segment; 0: as if there was none
};

struct DevicePoolStats {
  Gauge allocated_bytes;  // drops at free()
  Gauge active_bytes;     // drops when the block is free for reuse
  Gauge requested_bytes;  // the requested bytes of active_bytes
  Gauge reserved_bytes;   // bytes of segments; of expandable ones, those that are mapped
  Gauge deferred_bytes;   // active, and freed: other streams may still use them
  std::int64_t num_alloc_retries = 0;
  std::int64_t num_ooms = 0;
  std::int64_t num_sync_all_streams = 0;  // waits for all that is in use elsewhere
  std::int64_t num_device_alloc = 0;      // calls that got memory from the device: or mapped it
  std::int64_t num_device_free = 0;
  DriverCalls driver;  // the same by kind, with their sizes
};

class DevicePool {
 public:
  // `events` is not owned and must outlive the pool.
  DevicePool(std::uint32_t device, DevicePoolOptions options, PoolEvents& events);
  // capacity_bytes 0: unlimited.
  DevicePool(std::uint32_t device, std::int64_t capacity_bytes, PoolEvents& events)
      : DevicePool(device, DevicePoolOptions{.total_bytes = capacity_bytes, .conf = {}}, events) {}
  DevicePool(const DevicePool&) = delete;
  DevicePool& operator=(const DevicePool&) = delete;
  ~DevicePool();  // drops the tokens that are still out

  // Null for 0 bytes, since such a tensor never reaches PyTorch's allocator. Throws OutOfMemory,
  // and LimitReached if the segments of the run exceed 16 TiB in all, or the addresses that
  // expandable ones reserve 128 TiB.
  Block* allocate(std::int64_t bytes, StreamId stream);
  [[noreturn]] void refuse(std::int64_t bytes);    // fails as if memory was full
  void free(Block* block);                         // null is allowed
  void record_use(Block* block, StreamId stream);  // PyTorch's record_stream
  void empty_cache();                              // torch.cuda.empty_cache

  const DevicePoolOptions& options() const { return options_; }
  const DevicePoolStats& stats() const { return stats_; }
  void reset_peaks();
  std::int64_t segments() const { return segments_in_use_; }  // with expandable ones
  std::int64_t free_blocks() const;                           // including whole segments

  // Tells what it does from now on; not owned, null: nobody.
  void trace_to(PoolTrace* trace) { trace_ = trace; }
  // Its segments as PyTorch's snapshot lists them: by address, each mapped part of an expandable
  // segment as one.
  std::vector<MemorySegment> snapshot() const;
  // Whether allocate() would ask nothing of the device.
  bool would_reuse(std::int64_t bytes, StreamId stream) const;
  // What it would give back first for want of memory because it is never split; null: nothing.
  const Block* would_release(std::int64_t bytes, StreamId stream) const;
  // A segment as it was: for a pool that goes on where another one was. Its blocks are in order and
  // fill it; of two neighbours not both are free. Returns those that are not free, in order.
  std::vector<Block*> adopt(const MemorySegment& segment);

 private:
  struct Deferred {
    PoolToken token;
    Block* block;
  };

  std::int64_t rounded(std::int64_t bytes) const;
  std::int64_t segment_bytes(std::int64_t rounded) const;
  FreeBlocks& free_blocks_for(std::int64_t rounded);
  FreeBlocks& free_blocks_of(const Block* block) {
    return block->segment().small ? small_ : large_;
  }
  bool collects() const;

  Block* find_or_make(std::int64_t rounded, StreamId stream);
  Block* make_segment(std::int64_t rounded, StreamId stream);
  bool has_room(std::int64_t bytes) const;
  std::uint64_t take_addresses(std::int64_t bytes);
  std::uint64_t reserve_addresses(std::int64_t bytes);
  [[noreturn]] void refuse_addresses(const std::string& most, std::int64_t bytes,
                                     std::uint64_t had);
  bool splits(const Block* block, std::int64_t bytes) const;
  Block* split(Block* block, std::int64_t bytes);  // the rest, which is nowhere yet
  void free_now(Block* block);
  void merge(Block* block, Block* neighbour);
  void poll();
  void settle(const Deferred& deferred);

  // Expandable segments (device_pool_expandable.cpp).
  std::int64_t page_bytes(bool small) const;
  Block* grow(std::int64_t rounded, StreamId stream);
  Block* find_growing(std::int64_t rounded, StreamId stream) const;
  Block* reserve(std::int64_t rounded, StreamId stream);
  bool map(Block* block, std::int64_t bytes);
  void unmap(Block* block);

  // Giving back (device_pool_release.cpp).
  void collect_garbage();
  std::vector<Block*> oversize_for(std::int64_t rounded, StreamId stream) const;
  bool release_oversize(std::int64_t rounded, StreamId stream);
  void release_cached();
  void release_cached(FreeBlocks& free_blocks);
  void release(Block* block);

  Block* new_block(const Segment* segment, std::uint64_t address, std::int64_t bytes);
  void delete_block(Block* block);
  const Segment* new_segment(const Segment& segment);
  void delete_segment(const Segment* segment);
  void tell(MemoryAction action, const Block* block, std::int64_t bytes) const;

  std::uint32_t device_;
  DevicePoolOptions options_;
  std::optional<std::int64_t> allowed_bytes_;  // by the fraction
  PoolEvents& events_;
  PoolTrace* trace_ = nullptr;
  SegmentAddresses addresses_;
  std::uint64_t next_reservation_;
  std::int64_t segments_in_use_ = 0;
  std::int64_t made_ = 0;  // segments, or with EqualBlocks::kOldestBlock blocks as well
  FreeBlocks small_, large_;
  std::map<StreamId, std::deque<Deferred>> deferred_;  // by the stream that still uses the block
  std::int64_t deferred_count_ = 0;
  std::deque<Block> blocks_;
  std::vector<Block*> unused_blocks_;
  std::deque<Segment> segments_;
  std::vector<Segment*> unused_segments_;
  DevicePoolStats stats_;
};

}  // namespace ferry::sim
