// PyTorch's caching allocator: blocks of one device's memory, per stream, split and merged.
//
// It models c10/cuda/CUDACachingAllocator.cpp (2.10 to 2.15) with its options
// (formats/alloc_conf.h):
// * Sizes are multiples of 512 bytes, or are rounded up to parts of powers of two.
// * Requests up to 1 MiB come from 2 MiB segments, those below 10 MiB from 20 MiB segments, and
//   larger ones from segments of their own in 2 MiB steps.
// * The best fit is taken, with ties by EqualBlocks. A freed block serves only its own stream.
// * A freed block that other streams use stays active until a query at a later allocation finds
//   these streams past the free.
// * With expandable segments (device_pool_expandable.cpp) a stream has one segment in each pool,
//   whose memory is mapped as it grows.
// * If memory is short (device_pool_release.cpp), old segments are collected and large blocks are
//   given back. Then the pool waits for all blocks in use elsewhere, gives back every whole free
//   segment, and tries once more.
//
// Invariants: blocks tile their segments; two neighbours are never both free; reserved bytes are
// the bytes of the segments; no decision depends on a pointer (the order is stream, size, rank,
// address). Addresses are numbers from (device + 1) << 44, which segments take from the top down
// (formats/segment_addresses.h). Expandable segments take theirs from 1 << 57 upwards. No address
// is used again by another segment.
//
// tests/vgpu/allocator compares it with PyTorch's own, operation by operation. The machine adds the
// time of driver calls. Not modelled: private pools, CUDA graphs.
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
  std::int64_t total_bytes = 0;    // the device's memory as PyTorch reports it; 0: unlimited
  std::int64_t context_bytes = 0;  // of these, bytes that no segment gets
  AllocConf conf;
  // For a replay of another device's run. If these are null, total_bytes and conf decide.
  std::function<bool(std::int64_t)> has_room = nullptr;  // true if so many more bytes fit
  std::function<std::uint64_t()> place = nullptr;  // address of the next segment; 0: free choice
};

struct DevicePoolStats {
  Gauge allocated_bytes;  // drops at free()
  Gauge active_bytes;     // drops when the block is free for reuse
  Gauge requested_bytes;  // the requested part of active_bytes
  Gauge reserved_bytes;   // bytes of segments; of expandable ones, the mapped bytes
  Gauge deferred_bytes;   // active, and freed: other streams may still use them
  std::int64_t num_alloc_retries = 0;
  std::int64_t num_ooms = 0;
  std::int64_t num_sync_all_streams = 0;  // waits for all blocks in use elsewhere
  std::int64_t num_device_alloc = 0;      // calls that allocated device memory, or mapped it
  std::int64_t num_device_free = 0;
  DriverCalls driver;  // these calls by kind, with their sizes
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
  ~DevicePool();  // drops the tokens that it still has

  // Returns null for 0 bytes, because such a tensor never reaches PyTorch's allocator. Throws
  // OutOfMemory. Throws LimitReached if the segments of the run exceed 16 TiB in all, or the
  // addresses that expandable ones reserve 128 TiB.
  Block* allocate(std::int64_t bytes, StreamId stream);
  [[noreturn]] void refuse(std::int64_t bytes);    // fails as if memory was full
  void free(Block* block);                         // null is allowed
  void record_use(Block* block, StreamId stream);  // PyTorch's record_stream
  void empty_cache();                              // torch.cuda.empty_cache

  const DevicePoolOptions& options() const { return options_; }
  const DevicePoolStats& stats() const { return stats_; }
  void reset_peaks();
  std::int64_t segments() const { return segments_in_use_; }  // also expandable ones
  std::int64_t free_blocks() const;                           // including whole segments

  // From now on, reports what it does to `trace`, which is not owned; null: to nobody.
  void trace_to(PoolTrace* trace) { trace_ = trace; }
  // Returns its segments as PyTorch's snapshot lists them: by address, with each mapped part of an
  // expandable segment as one.
  std::vector<MemorySegment> snapshot() const;
  // True if allocate() would request nothing from the device.
  bool would_reuse(std::int64_t bytes, StreamId stream) const;
  // Returns the first block that the pool would give back for lack of memory, because it is never
  // split; null: none.
  const Block* would_release(std::int64_t bytes, StreamId stream) const;
  // Adds a segment as it was, for a pool that continues the work of another. Its blocks must be in
  // order and fill it, without two free neighbours. Returns the blocks that are not free, in order.
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
  Block* split(Block* block, std::int64_t bytes);  // returns the rest, which is in no list yet
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

  // Release of memory (device_pool_release.cpp).
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
  std::optional<std::int64_t> allowed_bytes_;  // by the memory fraction
  PoolEvents& events_;
  PoolTrace* trace_ = nullptr;
  SegmentAddresses addresses_;
  std::uint64_t next_reservation_;
  std::int64_t segments_in_use_ = 0;
  std::int64_t made_ = 0;  // segments made; with EqualBlocks::kOldestBlock, blocks too
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
