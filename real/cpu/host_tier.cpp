#include "real/cpu/host_tier.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>

#include "real/cpu/workers.h"

namespace ferry::real {

namespace {

constexpr std::int64_t kPage = 4096;
constexpr std::int64_t kAlignment = 512;
// The number of events that a release stores without allocating.
constexpr std::size_t kGates = 4;

std::int64_t rounded(std::int64_t bytes) {
  const std::int64_t to = bytes < kPage ? kAlignment : kPage;
  return (bytes + to - 1) / to * to;
}

std::int64_t machine_bytes() {
  return std::int64_t{sysconf(_SC_PHYS_PAGES)} * std::int64_t{sysconf(_SC_PAGESIZE)};
}

}  // namespace

HostTier::HostTier(Workers& workers, HostTierOptions options)
    : workers_(workers), options_(std::move(options)), memory_bytes_(machine_bytes()) {
  if (options_.disk) disk_ = std::make_unique<DiskStore>(*options_.disk, options_.disk_io);
}

HostBlock* HostTier::allocate(std::int64_t bytes) {
  collect();
  if (disk_) return adopt(fresh_slot(bytes));
  const std::int64_t size = rounded(bytes);
  if (std::optional<Blocks> cached = find_cached(size)) {
    cached->front().bytes = bytes;
    return adopt(*std::move(cached));
  }
  return adopt(fresh_memory(bytes, size));
}

void HostTier::release(HostBlock* block, std::span<const CpuEvent> gates) noexcept {
  try {
    block->gates.assign(gates.begin(), gates.end());
  } catch (const std::bad_alloc&) {
    for (const CpuEvent& gate : gates) workers_.await(gate);
  }
  {
    const std::lock_guard lock(mutex_);
    gated_.splice(gated_.end(), in_use_, block->self);
  }
  collect();
}

void HostTier::collect() noexcept {
  const std::lock_guard collecting(collecting_);
  for (Blocks done = take_done(); !done.empty();) {
    Blocks one;
    one.splice(one.end(), done, done.begin());
    retire(std::move(one));
  }
  trim(options_.cache_bytes_max);
}

// --- Copies

void HostTier::write(HostBlock& block, const void* from) {
  try {
    if (disk_) {
      disk_->write(block.slot, from);
    } else if (block.bytes > 0) {
      std::memcpy(block.memory.get(), from, static_cast<std::size_t>(block.bytes));
    }
  } catch (...) {
    spoil(block, std::current_exception());
    throw;
  }
  spoil(block, nullptr);
}

void HostTier::read(const HostBlock& block, void* to) {
  std::exception_ptr error;
  {
    const std::lock_guard lock(mutex_);
    error = block.error;
  }
  if (error) std::rethrow_exception(error);
  if (disk_) {
    disk_->read(block.slot, to);
  } else if (block.bytes > 0) {
    std::memcpy(to, block.memory.get(), static_cast<std::size_t>(block.bytes));
  }
}

void HostTier::spoil(HostBlock& block, const std::exception_ptr& error) noexcept {
  const std::lock_guard lock(mutex_);
  block.error = error;
}

// --- Taking and returning blocks

std::optional<HostTier::Blocks> HostTier::find_cached(std::int64_t size) {
  const std::lock_guard lock(mutex_);
  // The block that was returned last is the warmest in the CPU's cache.
  auto at = cached_.lower_bound({size + 1, 0});
  if (at == cached_.begin() || (--at)->first.first != size) return std::nullopt;
  Blocks found = std::move(at->second);
  cached_sizes_.erase(at->first.second);
  cached_.erase(at);
  cached_bytes_ -= size;
  in_use_bytes_ += size;
  return found;
}

// Registers the block, the only one in `adopted`.
HostBlock* HostTier::adopt(Blocks&& adopted) {
  HostBlock& block = adopted.front();
  block.self = adopted.begin();
  const std::lock_guard lock(mutex_);
  in_use_.splice(in_use_.end(), adopted);
  return &block;
}

HostTier::Blocks HostTier::fresh_memory(std::int64_t bytes, std::int64_t size) {
  Blocks fresh(1);
  HostBlock& block = fresh.front();
  block.bytes = bytes;
  block.size = size;
  block.gates.reserve(kGates);
  std::uint64_t seen = 0;
  do {
    seen = retired();
    if (!make_room(size)) continue;
    block.memory = memory(size);
    if (block.memory) return fresh;
    count_in_use(-size);
  } while (wait_for_gated(seen));
  throw make_error<void>(OutOfHostMemory("the host tier cannot have " + std::to_string(bytes) +
                                         " bytes: " + std::to_string(in_use_bytes()) +
                                         " are in use of a limit of " +
                                         std::to_string(memory_limit())));
}

HostBlock::Memory HostTier::memory(std::int64_t size) {
  const auto some = [size] {
    const auto bytes = static_cast<std::size_t>(std::max(size, kAlignment));
    return HostBlock::Memory(static_cast<std::byte*>(std::aligned_alloc(kAlignment, bytes)));
  };
  if (HostBlock::Memory memory = some()) return memory;
  trim(0);
  return some();
}

HostTier::Blocks HostTier::fresh_slot(std::int64_t bytes) {
  Blocks fresh(1);
  HostBlock& block = fresh.front();
  block.bytes = bytes;
  block.size = bytes;
  block.gates.reserve(kGates);
  while (true) {
    const std::uint64_t seen = retired();
    try {
      block.slot = disk_->allocate(bytes);
      count_in_use(bytes);
      return fresh;
    } catch (const DiskFull&) {
      if (!wait_for_gated(seen)) throw;
    }
  }
}

// If `size` more bytes fit after cached blocks are freed, counts them and returns true.
bool HostTier::make_room(std::int64_t size) {
  std::int64_t cached_bytes_max = 0;
  {
    const std::lock_guard lock(mutex_);
    if (size > memory_limit() - in_use_bytes_) return false;
    in_use_bytes_ += size;
    cached_bytes_max = memory_limit() - in_use_bytes_;
  }
  trim(cached_bytes_max);
  return true;
}

// Frees the cached blocks that were returned first.
void HostTier::trim(std::int64_t cached_bytes_max) noexcept {
  Blocks garbage;  // destroyed outside the lock
  const std::lock_guard lock(mutex_);
  while (cached_bytes_ > cached_bytes_max) {
    const auto [at, size] = *cached_sizes_.begin();
    const auto oldest = cached_.find({size, at});
    garbage.splice(garbage.end(), oldest->second);
    cached_.erase(oldest);
    cached_sizes_.erase(cached_sizes_.begin());
    cached_bytes_ -= size;
  }
}

// Waits for the gated block that was released first. Returns false if no block has come back since
// `seen` was read.
bool HostTier::wait_for_gated(std::uint64_t seen) {
  std::vector<CpuEvent> gates;
  {
    const std::lock_guard lock(mutex_);
    if (!gated_.empty()) gates = gated_.front().gates;
  }
  for (const CpuEvent& gate : gates) workers_.await(gate);
  collect();
  return retired() != seen;
}

HostTier::Blocks HostTier::take_done() noexcept {
  Blocks done;
  const std::lock_guard lock(mutex_);
  for (auto at = gated_.begin(); at != gated_.end();) {
    const auto next = std::next(at);
    const bool ended = std::all_of(at->gates.begin(), at->gates.end(),
                                   [&](const CpuEvent& gate) { return workers_.done(gate); });
    if (ended) done.splice(done.end(), gated_, at);
    at = next;
  }
  return done;
}

// Frees the slot in the file, or caches the memory.
void HostTier::retire(Blocks&& returned) noexcept {
  HostBlock& block = returned.front();
  block.gates.clear();
  block.error = nullptr;
  if (disk_) disk_->free(block.slot);
  const std::lock_guard lock(mutex_);
  ++retired_;
  in_use_bytes_ -= block.size;
  if (disk_) return;
  try {
    const auto size = cached_sizes_.emplace(retired_, block.size).first;
    try {
      cached_.emplace(std::pair(block.size, retired_), std::move(returned));
    } catch (...) {
      cached_sizes_.erase(size);
      throw;
    }
    cached_bytes_ += block.size;
  } catch (const std::bad_alloc&) {  // no memory for its entry: it is freed
  }
}

// --- Counts

HostUsage HostTier::usage() const {
  if (!disk_) return {in_use_bytes(), memory_limit()};
  std::int64_t total = options_.disk->bytes_max;
  if (total == kUnlimited) {
    std::error_code error;
    const auto space = std::filesystem::space(disk_->directory(), error);
    total = error ? 0 : static_cast<std::int64_t>(space.capacity);
  }
  return {disk_->usage().in_use_bytes, total};
}

std::int64_t HostTier::memory_limit() const { return std::min(options_.bytes_max, memory_bytes_); }

void HostTier::count_in_use(std::int64_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  in_use_bytes_ += bytes;
}

std::uint64_t HostTier::retired() const {
  const std::lock_guard lock(mutex_);
  return retired_;
}

std::int64_t HostTier::in_use_bytes() const {
  const std::lock_guard lock(mutex_);
  return in_use_bytes_;
}

std::int64_t HostTier::cached_bytes() const {
  const std::lock_guard lock(mutex_);
  return cached_bytes_;
}

}  // namespace ferry::real
