// Implements device_pool.h: allocation, free, and the split and merge of blocks. Expandable
// segments, the release of memory and snapshots are in device_pool_*.cpp.
#include "sim/gpu/device_pool.h"

#include <algorithm>
#include <string>
#include <utility>

#include "formats/error.h"
#include "formats/limits.h"
#include "sim/gpu/device_pool_sizes.h"

namespace ferry::sim {
namespace {

constexpr std::uint64_t kReservations = std::uint64_t{1} << 57;  // above every device's segments
constexpr int kReservationBits = 47;                             // for each device
static_assert(limits::kStorageBytes < std::int64_t{1} << kDeviceAddressBits);

std::int64_t part_of(double fraction, std::int64_t bytes) {
  return static_cast<std::int64_t>(fraction * static_cast<double>(bytes));
}

}  // namespace

DevicePool::DevicePool(std::uint32_t device, DevicePoolOptions options, PoolEvents& events)
    : device_(device),
      options_(std::move(options)),
      events_(events),
      addresses_((std::uint64_t{device} + 1) << kDeviceAddressBits,
                 (std::uint64_t{device} + 2) << kDeviceAddressBits,
                 options_.conf.segments_go_up ? AddressOrder::kUp : AddressOrder::kDown),
      next_reservation_(kReservations + (std::uint64_t{device} << kReservationBits)) {
  const double fraction = options_.conf.per_process_memory_fraction;
  if (options_.total_bytes > 0 && fraction < 1) {
    allowed_bytes_ = part_of(fraction, options_.total_bytes);
  }
}

DevicePool::~DevicePool() {
  for (const auto& [stream, queue] : deferred_) {
    for (const Deferred& deferred : queue) events_.drop(deferred.token);
  }
}

std::int64_t DevicePool::rounded(std::int64_t bytes) const {
  return rounded_bytes(bytes, options_.conf);
}

std::int64_t DevicePool::segment_bytes(std::int64_t rounded) const {
  if (rounded <= kSmallSize) return kSmallSegment;
  return rounded < kMinLarge ? options_.conf.large_segment_bytes : round_up(rounded, kRoundLarge);
}

FreeBlocks& DevicePool::free_blocks_for(std::int64_t rounded) {
  return rounded <= kSmallSize ? small_ : large_;
}

bool DevicePool::collects() const {
  return allowed_bytes_ && options_.conf.garbage_collection_threshold > 0;
}

Block* DevicePool::allocate(std::int64_t bytes, StreamId stream) {
  require(bytes >= 0, "a request must not be negative");
  if (bytes == 0) return nullptr;
  if (deferred_count_ > 0) poll();
  const std::int64_t size = rounded(bytes);
  Block* block = find_or_make(size, stream);
  if (block == nullptr) {
    if (trace_ != nullptr) {
      const std::int64_t left =
          options_.total_bytes - options_.context_bytes - stats_.reserved_bytes.current;
      const std::uint64_t free_bytes = left > 0 ? static_cast<std::uint64_t>(left) : 0;
      trace_->on({MemoryAction::kOom, free_bytes, size, stream, 0});
    }
    refuse(bytes);
  }
  if (splits(block, size)) {
    Block* rest = split(block, size);
    std::swap(block->rank_, rest->rank_);  // to PyTorch, the rest is the older block
    free_blocks_of(block).put(rest);
  }
  block->allocated_ = true;
  block->requested_ = bytes;
  tell(MemoryAction::kAlloc, block, bytes);
  stats_.allocated_bytes.add(block->bytes_);
  stats_.active_bytes.add(block->bytes_);
  stats_.requested_bytes.add(bytes);
  return block;
}

Block* DevicePool::find_or_make(std::int64_t rounded, StreamId stream) {
  FreeBlocks& free_blocks = free_blocks_for(rounded);
  if (collects()) free_blocks.count_search();
  Block* block = free_blocks.take(rounded, stream, options_.conf);
  if (block != nullptr) return block;
  if (collects()) collect_garbage();
  block = make_segment(rounded, stream);
  if (block != nullptr) return block;
  if (release_oversize(rounded, stream)) block = make_segment(rounded, stream);
  if (block != nullptr) return block;
  release_cached();
  ++stats_.num_alloc_retries;
  return make_segment(rounded, stream);
}

void DevicePool::refuse(std::int64_t bytes) {
  ++stats_.num_ooms;
  throw OutOfMemory(device_, {.requested = bytes,
                              .segment = segment_bytes(rounded(bytes)),
                              .total = options_.total_bytes,
                              .free = options_.total_bytes - options_.context_bytes -
                                      stats_.reserved_bytes.current,
                              .allowed = allowed_bytes_,
                              .allocated = stats_.allocated_bytes.current,
                              .reserved = stats_.reserved_bytes.current});
}

bool DevicePool::has_room(std::int64_t bytes) const {
  if (options_.has_room) return options_.has_room(bytes);
  return options_.total_bytes == 0 ||
         stats_.reserved_bytes.current + bytes <= options_.total_bytes - options_.context_bytes;
}

// Returns null if the device has no room for a segment, or the memory fraction does not allow it.
Block* DevicePool::make_segment(std::int64_t rounded, StreamId stream) {
  const std::int64_t bytes = segment_bytes(rounded);
  if (allowed_bytes_ && stats_.reserved_bytes.current + bytes > *allowed_bytes_) return nullptr;
  if (options_.conf.expandable_segments) return grow(rounded, stream);
  if (!has_room(bytes)) return nullptr;
  const std::uint64_t address = take_addresses(bytes);
  Block* block =
      new_block(new_segment({address, bytes, stream, rounded <= kSmallSize}), address, bytes);
  stats_.reserved_bytes.add(bytes);
  ++stats_.num_device_alloc;
  ++stats_.driver.mallocs;
  stats_.driver.malloc_bytes += bytes;
  tell(MemoryAction::kSegmentAlloc, block, bytes);
  return block;
}

std::uint64_t DevicePool::take_addresses(std::int64_t bytes) {
  if (const std::uint64_t place = options_.place ? options_.place() : 0; place != 0) return place;
  const auto address = addresses_.take(static_cast<std::uint64_t>(bytes));
  if (!address) {
    refuse_addresses("16 TiB", bytes, (std::uint64_t{1} << kDeviceAddressBits) - addresses_.left());
  }
  return *address;
}

std::uint64_t DevicePool::reserve_addresses(std::int64_t bytes) {
  if (const std::uint64_t place = options_.place ? options_.place() : 0; place != 0) return place;
  const std::uint64_t begin = kReservations + (std::uint64_t{device_} << kReservationBits);
  const std::uint64_t end = begin + (std::uint64_t{1} << kReservationBits);
  if (static_cast<std::uint64_t>(bytes) >= end - next_reservation_) {
    refuse_addresses("128 TiB, reserved for expandable ones,", bytes, next_reservation_ - begin);
  }
  return std::exchange(next_reservation_, next_reservation_ + static_cast<std::uint64_t>(bytes));
}

void DevicePool::refuse_addresses(const std::string& most, std::int64_t bytes, std::uint64_t had) {
  ++stats_.num_ooms;
  throw LimitReached("the simulated GPU " + std::to_string(device_) +
                     " has no addresses left: expected segments of at most " + most +
                     " in a run; they have " + std::to_string(had) + " bytes, and this one needs " +
                     std::to_string(bytes) + " more");
}

// True if the rest of the block is split off. A block of the large pool keeps a small rest. With
// max_split_size, a request of at least this size keeps all of its block.
bool DevicePool::splits(const Block* block, std::int64_t bytes) const {
  const std::int64_t rest = block->bytes_ - bytes;
  if (block->segment().small || options_.conf.expandable_segments) return rest >= kMinBlock;
  const auto& most = options_.conf.max_split_bytes;
  return (!most || bytes < *most) && rest > kSmallSize;
}

// Splits off the end of the block and returns it. The block keeps the low addresses.
Block* DevicePool::split(Block* block, std::int64_t bytes) {
  Block* tail = new_block(block->segment_, block->address_ + static_cast<std::uint64_t>(bytes),
                          block->bytes_ - bytes);
  tail->before_ = block;
  tail->after_ = block->after_;
  if (tail->after_ != nullptr) tail->after_->before_ = tail;
  block->after_ = tail;
  block->bytes_ = bytes;
  return tail;
}

void DevicePool::free(Block* block) {
  if (block == nullptr) return;
  require(block->allocated_, "a block was freed twice");
  block->allocated_ = false;
  stats_.allocated_bytes.add(-block->bytes_);
  tell(MemoryAction::kFreeRequested, block, block->requested_);
  if (block->uses_.empty()) return free_now(block);
  for (const StreamId stream : block->uses_) {
    deferred_[stream].push_back({events_.record(stream), block});
    ++block->pending_;
    ++deferred_count_;
  }
  stats_.deferred_bytes.add(block->bytes_);
  block->uses_.clear();
}

void DevicePool::record_use(Block* block, StreamId stream) {
  require(block != nullptr && block->allocated_, "record_use of a block that is not in use");
  if (stream == block->stream()) return;
  const auto at = std::lower_bound(block->uses_.begin(), block->uses_.end(), stream);
  if (at == block->uses_.end() || *at != stream) block->uses_.insert(at, stream);
}

void DevicePool::free_now(Block* block) {
  tell(MemoryAction::kFreeCompleted, block, block->requested_);
  stats_.active_bytes.add(-block->bytes_);
  stats_.requested_bytes.add(-block->requested_);
  merge(block, block->before_);
  merge(block, block->after_);
  free_blocks_of(block).put(block);
}

// Merges a free neighbour into the block, if both have memory or both have none.
void DevicePool::merge(Block* block, Block* neighbour) {
  if (neighbour == nullptr || !neighbour->is_free() || neighbour->mapped_ != block->mapped_) return;
  FreeBlocks& free_blocks = free_blocks_of(neighbour);
  if (neighbour->mapped_) {
    free_blocks.remove(neighbour);
  } else {
    free_blocks.remove_unmapped(neighbour);
  }
  if (neighbour == block->before_) {
    block->address_ = neighbour->address_;
    block->before_ = neighbour->before_;
    if (block->before_ != nullptr) block->before_->after_ = block;
  } else {
    block->after_ = neighbour->after_;
    if (block->after_ != nullptr) block->after_->before_ = block;
  }
  block->bytes_ += neighbour->bytes_;
  delete_block(neighbour);
}

// Polls the oldest free of each stream first. An unfinished one holds back those behind it.
void DevicePool::poll() {
  for (auto& [stream, queue] : deferred_) {
    while (!queue.empty() && events_.done(queue.front().token)) {
      const Deferred deferred = queue.front();
      queue.pop_front();
      settle(deferred);
    }
  }
}

void DevicePool::settle(const Deferred& deferred) {
  --deferred_count_;
  events_.drop(deferred.token);
  if (--deferred.block->pending_ > 0) return;
  stats_.deferred_bytes.add(-deferred.block->bytes_);
  free_now(deferred.block);
}

void DevicePool::reset_peaks() {
  for (Gauge* gauge : {&stats_.allocated_bytes, &stats_.active_bytes, &stats_.requested_bytes,
                       &stats_.reserved_bytes, &stats_.deferred_bytes}) {
    gauge->peak = gauge->current;
  }
}

std::int64_t DevicePool::free_blocks() const {
  return static_cast<std::int64_t>(small_.size() + large_.size());
}

void DevicePool::tell(MemoryAction action, const Block* block, std::int64_t bytes) const {
  if (trace_ == nullptr) return;
  trace_->on({action, block->address_, bytes, block->stream(), block->segment().address});
}

Block* DevicePool::new_block(const Segment* segment, std::uint64_t address, std::int64_t bytes) {
  Block* block = nullptr;
  if (unused_blocks_.empty()) {
    block = &blocks_.emplace_back();
  } else {
    block = unused_blocks_.back();
    unused_blocks_.pop_back();
  }
  block->segment_ = segment;
  block->address_ = address;
  block->bytes_ = bytes;
  switch (options_.conf.equal_blocks) {
    case EqualBlocks::kLowestAddress:
      break;
    case EqualBlocks::kOldestBlock:
      block->rank_ = ++made_;
      break;
    case EqualBlocks::kOldestSegment:
      block->rank_ = segment->number;
  }
  return block;
}

void DevicePool::delete_block(Block* block) {
  *block = Block{};
  unused_blocks_.push_back(block);
}

const Segment* DevicePool::new_segment(const Segment& segment) {
  ++segments_in_use_;
  Segment* slot = nullptr;
  if (unused_segments_.empty()) {
    slot = &segments_.emplace_back();
  } else {
    slot = unused_segments_.back();
    unused_segments_.pop_back();
  }
  *slot = segment;
  slot->number = ++made_;
  return slot;
}

void DevicePool::delete_segment(const Segment* segment) {
  --segments_in_use_;
  unused_segments_.push_back(const_cast<Segment*>(segment));
}

}  // namespace ferry::sim
