#include "sim/gpu/device_pool.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <tuple>

#include "formats/error.h"
#include "formats/limits.h"

namespace ferry::sim {
namespace {

constexpr std::int64_t kMiB = 1 << 20;
constexpr std::int64_t kMinBlock = 512;
constexpr std::int64_t kSmallSize = kMiB;  // the largest request of the small pool
constexpr std::int64_t kSmallSegment = 2 * kMiB;
constexpr std::int64_t kMinLarge = 10 * kMiB;  // larger requests get a segment of their own
constexpr std::int64_t kLargeSegment = 20 * kMiB;
constexpr std::int64_t kRoundLarge = 2 * kMiB;
constexpr int kDeviceAddressBits = 44;
constexpr std::uint64_t kDeviceAddresses = std::uint64_t{1} << kDeviceAddressBits;
static_assert(limits::kStorageBytes < std::int64_t{1} << kDeviceAddressBits);

std::int64_t round_up(std::int64_t bytes, std::int64_t to) { return (bytes + to - 1) / to * to; }

std::int64_t segment_bytes(std::int64_t rounded) {
  if (rounded <= kSmallSize) return kSmallSegment;
  return rounded < kMinLarge ? kLargeSegment : round_up(rounded, kRoundLarge);
}

// Aborts on a programmer's error.
void require(bool holds, const char* what) {
  if (holds) [[likely]]
    return;
  std::fprintf(stderr, "ferry::sim::DevicePool: %s\n", what);
  std::abort();
}

std::string message(std::uint32_t device, std::int64_t segment, std::int64_t total,
                    std::int64_t allocated, std::int64_t reserved) {
  return "CUDA out of memory. Tried to allocate " + format_bytes(segment) + ". GPU " +
         std::to_string(device) + " has a total capacity of " + format_bytes(total) + " of which " +
         format_bytes(total - reserved) + " is free. Of the allocated memory " +
         format_bytes(allocated) + " is allocated by PyTorch, and " +
         format_bytes(reserved - allocated) +
         " is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try "
         "setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See "
         "documentation for Memory Management  (https://docs.pytorch.org/docs/stable/notes/"
         "cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)";
}

}  // namespace

std::string format_bytes(std::int64_t bytes) {
  if (bytes <= 1024) return std::to_string(bytes) + " bytes";
  constexpr std::array<const char*, 3> kUnits = {"KiB", "MiB", "GiB"};
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; unit < 2 && value > 1024; ++unit) value /= 1024;
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.2f %s", value, kUnits[unit]);
  return text.data();
}

OutOfMemory::OutOfMemory(std::uint32_t device, std::int64_t requested, std::int64_t segment,
                         std::int64_t total, std::int64_t allocated, std::int64_t reserved)
    : std::runtime_error(message(device, segment, total, allocated, reserved)),
      requested_bytes(requested),
      segment_bytes(segment),
      total_bytes(total),
      free_bytes(total - reserved),
      allocated_bytes(allocated),
      reserved_bytes(reserved) {}

bool DevicePool::Key::operator<(const Key& other) const {
  return std::tie(stream, bytes, address) < std::tie(other.stream, other.bytes, other.address);
}

DevicePool::DevicePool(std::uint32_t device, std::int64_t capacity_bytes, PoolEvents& events)
    : device_(device),
      capacity_bytes_(capacity_bytes),
      events_(events),
      next_address_((std::uint64_t{device} + 1) << kDeviceAddressBits) {}

DevicePool::~DevicePool() {
  for (const auto& [stream, queue] : deferred_) {
    for (const Deferred& deferred : queue) events_.drop(deferred.token);
  }
}

Block* DevicePool::allocate(std::int64_t bytes, StreamId stream) {
  require(bytes >= 0, "a request must not be negative");
  if (bytes == 0) return nullptr;
  if (deferred_count_ > 0) poll();
  const std::int64_t rounded = round_up(bytes, kMinBlock);
  Block* block = take_free(rounded, stream);
  if (block == nullptr) block = make_segment(rounded, stream);
  if (block == nullptr) {
    release_cached();
    ++stats_.num_alloc_retries;
    block = make_segment(rounded, stream);
  }
  if (block == nullptr) refuse(bytes);
  split(block, rounded);
  block->allocated_ = true;
  block->requested_ = bytes;
  stats_.allocated_bytes.add(block->bytes_);
  stats_.active_bytes.add(block->bytes_);
  stats_.requested_bytes.add(bytes);
  return block;
}

void DevicePool::refuse(std::int64_t bytes) {
  ++stats_.num_ooms;
  throw OutOfMemory(device_, bytes, segment_bytes(round_up(bytes, kMinBlock)), capacity_bytes_,
                    stats_.allocated_bytes.current, stats_.reserved_bytes.current);
}

// Best fit: the smallest block that suffices; of equal ones, that with the lowest address.
Block* DevicePool::take_free(std::int64_t bytes, StreamId stream) {
  FreeBlocks& free_blocks = bytes <= kSmallSize ? small_ : large_;
  const auto found = free_blocks.lower_bound({stream, bytes, 0, nullptr});
  if (found == free_blocks.end() || found->stream != stream) return nullptr;
  Block* block = found->block;
  spare_ = free_blocks.extract(found);
  return block;
}

Block* DevicePool::make_segment(std::int64_t bytes, StreamId stream) {
  const std::int64_t segment = segment_bytes(bytes);
  if (capacity_bytes_ > 0 && stats_.reserved_bytes.current + segment > capacity_bytes_) {
    return nullptr;
  }
  const std::uint64_t end = (std::uint64_t{device_} + 2) << kDeviceAddressBits;
  if (static_cast<std::uint64_t>(segment) >= end - next_address_) {
    ++stats_.num_ooms;
    throw LimitReached("the simulated GPU " + std::to_string(device_) +
                       " has no addresses left: a run has segments of 16 TiB in all, and this "
                       "one needs " +
                       std::to_string(segment) + " bytes more than the " +
                       std::to_string(next_address_ - (end - kDeviceAddresses)) + " that it had");
  }
  Block* block = new_block();
  block->address_ = next_address_;
  block->bytes_ = segment;
  block->stream_ = stream;
  block->small_ = bytes <= kSmallSize;
  next_address_ += static_cast<std::uint64_t>(segment);
  stats_.reserved_bytes.add(segment);
  ++stats_.num_device_alloc;
  ++segments_;
  return block;
}

// The block keeps the low addresses. A large block keeps a small rest.
void DevicePool::split(Block* block, std::int64_t bytes) {
  const std::int64_t rest = block->bytes_ - bytes;
  if (block->small_ ? rest < kMinBlock : rest <= kSmallSize) return;
  Block* tail = new_block();
  tail->address_ = block->address_ + static_cast<std::uint64_t>(bytes);
  tail->bytes_ = rest;
  tail->stream_ = block->stream_;
  tail->small_ = block->small_;
  tail->before_ = block;
  tail->after_ = block->after_;
  if (tail->after_ != nullptr) tail->after_->before_ = tail;
  block->after_ = tail;
  block->bytes_ = bytes;
  put_free(tail);
}

void DevicePool::put_free(Block* block) {
  const Key key{block->stream_, block->bytes_, block->address_, block};
  FreeBlocks& free_blocks = free_blocks_like(block);
  if (spare_.empty()) {
    free_blocks.insert(key);
  } else {
    spare_.value() = key;
    free_blocks.insert(std::move(spare_));
  }
}

void DevicePool::free(Block* block) {
  if (block == nullptr) return;
  require(block->allocated_, "a block was freed twice");
  block->allocated_ = false;
  stats_.allocated_bytes.add(-block->bytes_);
  if (block->uses_.empty()) return free_now(block);
  for (const StreamId stream : block->uses_) {
    deferred_[stream].push_back({events_.record(stream), block});
    ++block->pending_;
    ++deferred_count_;
  }
  block->uses_.clear();
}

void DevicePool::record_use(Block* block, StreamId stream) {
  require(block != nullptr && block->allocated_, "record_use of a block that is not in use");
  if (stream == block->stream_) return;
  const auto at = std::lower_bound(block->uses_.begin(), block->uses_.end(), stream);
  if (at == block->uses_.end() || *at != stream) block->uses_.insert(at, stream);
}

void DevicePool::free_now(Block* block) {
  stats_.active_bytes.add(-block->bytes_);
  stats_.requested_bytes.add(-block->requested_);
  block->requested_ = 0;
  merge(block, block->before_);
  merge(block, block->after_);
  put_free(block);
}

// Merges a free neighbour into the block.
void DevicePool::merge(Block* block, Block* neighbour) {
  if (neighbour == nullptr || neighbour->allocated_ || neighbour->pending_ > 0) return;
  FreeBlocks& free_blocks = free_blocks_like(neighbour);
  spare_ =
      free_blocks.extract({neighbour->stream_, neighbour->bytes_, neighbour->address_, neighbour});
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

// Polls each stream's oldest first; an unfinished one holds back those behind it in its stream.
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
  if (--deferred.block->pending_ == 0) free_now(deferred.block);
}

// cudaFrees every whole segment that is free, in (stream, size, address) order, large ones first.
void DevicePool::release_cached() {
  for (auto& [stream, queue] : deferred_) {
    while (!queue.empty()) {
      const Deferred deferred = queue.front();
      queue.pop_front();
      events_.wait(deferred.token);
      settle(deferred);
    }
  }
  for (FreeBlocks* free_blocks : {&large_, &small_}) {
    for (auto it = free_blocks->begin(); it != free_blocks->end();) {
      Block* block = it->block;
      if (block->before_ != nullptr || block->after_ != nullptr) {
        ++it;
        continue;
      }
      it = free_blocks->erase(it);
      stats_.reserved_bytes.add(-block->bytes_);
      ++stats_.num_device_free;
      --segments_;
      delete_block(block);
    }
  }
}

void DevicePool::reset_peaks() {
  for (Gauge* gauge : {&stats_.allocated_bytes, &stats_.active_bytes, &stats_.requested_bytes,
                       &stats_.reserved_bytes}) {
    gauge->peak = gauge->current;
  }
}

std::int64_t DevicePool::free_blocks() const {
  return static_cast<std::int64_t>(small_.size() + large_.size());
}

Block* DevicePool::new_block() {
  if (unused_blocks_.empty()) return &blocks_.emplace_back();
  Block* block = unused_blocks_.back();
  unused_blocks_.pop_back();
  return block;
}

void DevicePool::delete_block(Block* block) {
  *block = Block{};
  unused_blocks_.push_back(block);
}

}  // namespace ferry::sim
