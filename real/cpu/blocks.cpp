#include "real/cpu/blocks.h"

#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <utility>

namespace ferry::real {

namespace {

constexpr std::int64_t kRound = 512;

std::unique_ptr<void, c10::DeleterFnPtr>& context_of(c10::StorageImpl& storage) {
  // This gives access to the member itself: move_context() only casts. The data stay in place for
  // threads that read them now.
  auto&& context = storage._mutable_data_ptr_no_checks().move_context();
  return context;
}

}  // namespace

Blocks::Blocks(Workers& workers, CpuStream janitor, std::int64_t cache_bytes_max, Observer observer)
    : workers_(workers),
      janitor_(janitor),
      cache_bytes_max_(cache_bytes_max),
      observer_(std::move(observer)) {}

// --- Pools

at::DataPtr Blocks::allocate(std::int64_t bytes, const CpuStream& stream, Keep device) {
  collect();  // takes blocks that are due, so their reuse does not depend on the workers' timing
  const std::int64_t size = (bytes + kRound - 1) / kRound * kRound;
  const Key key{stream.index, size};
  {
    const std::lock_guard lock(mutex_);
    const auto found = buckets_.find(key);
    if (found != buckets_.end() && !found->second.idle.empty()) {
      found->second.idle.back().device = std::move(device);
      cached_bytes_ -= size;
      return hand_out(found->second, found->second.idle);
    }
  }
  std::list<Block> fresh(1);
  Block& block = fresh.front();
  block.blocks = this;
  block.device = std::move(device);
  block.stream = stream;
  block.size = size;
  block.memory = c10::GetCPUAllocator()->allocate(static_cast<std::size_t>(size));
  block.self = fresh.begin();
  const std::lock_guard lock(mutex_);
  return hand_out(buckets_[key], fresh);
}

void Blocks::tell(const Block& block, bool out) const {
  if (!observer_) return;
  const auto address = reinterpret_cast<std::uint64_t>(block.memory.get());
  observer_({out, address, block.size, block.stream});
}

// Hands out the last block of `from`.
at::DataPtr Blocks::hand_out(Bucket& bucket, std::list<Block>& from) {
  Block& block = from.back();
  out_.splice(out_.end(), from, block.self);
  ++bucket.out;
  in_use_bytes_ += block.size;
  tell(block, true);
  return {block.memory.get(), &block, &Blocks::return_block, block.memory.device()};
}

void Blocks::return_block(void* context) {
  Block& block = *static_cast<Block*>(context);
  Blocks& blocks = *block.blocks;
  const Keep device = std::move(block.device);  // destroyed last: it may own `blocks`
  blocks.tell(block, false);
  {
    const std::lock_guard lock(blocks.mutex_);
    block.returned = blocks.workers_.latest(block.stream);
    block.returned_at = ++blocks.returns_;
    Bucket& bucket = blocks.buckets_.at({block.stream.index, block.size});
    --bucket.out;
    bucket.idle.splice(bucket.idle.end(), blocks.out_, block.self);
    blocks.in_use_bytes_ -= block.size;
    blocks.cached_bytes_ += block.size;
  }
  blocks.take_surplus(blocks.cache_bytes_max_);
}

// Takes the blocks that were returned first, among those that their stream has finished with.
std::list<Blocks::Block> Blocks::take_surplus(std::int64_t bytes_max) noexcept {
  std::list<Block> surplus;
  const std::lock_guard lock(mutex_);
  while (cached_bytes_ > bytes_max) {
    auto oldest = buckets_.end();
    for (auto at = buckets_.begin(); at != buckets_.end(); ++at) {
      const std::list<Block>& idle = at->second.idle;
      if (idle.empty() || !workers_.done(idle.front().returned)) continue;
      if (oldest == buckets_.end() ||
          idle.front().returned_at < oldest->second.idle.front().returned_at) {
        oldest = at;
      }
    }
    if (oldest == buckets_.end()) break;
    Bucket& bucket = oldest->second;
    cached_bytes_ -= bucket.idle.front().size;
    surplus.splice(surplus.end(), bucket.idle, bucket.idle.begin());
    if (bucket.idle.empty() && bucket.out == 0) buckets_.erase(oldest);
  }
  return surplus;
}

// --- Uses

std::mutex& Blocks::deleters() {
  static std::mutex* const mutex = new std::mutex;  // storages may be dropped after main()
  return *mutex;
}

// Returns this device's entry for the storage. An entry of another device is wrapped like any
// deleter.
Blocks::Use& Blocks::use_of(c10::StorageImpl& storage, const Keep& device) {
  auto& context = context_of(storage);
  if (context.get_deleter() == &Blocks::drop_used) {
    Use& use = static_cast<Used*>(context.get())->front();
    if (use.device.lock() == device) return use;
  }
  auto fresh = std::make_unique<Used>(1);
  Use& use = fresh->front();
  use.blocks = this;
  use.device = device;
  use.original = std::move(context);
  context = Original(fresh.release(), &Blocks::drop_used);
  return use;
}

void Blocks::record_use(c10::StorageImpl& storage, const CpuStream& stream, Keep device) {
  const CpuEvent user = workers_.latest(stream);  // throws if the stream belongs to another device
  const std::lock_guard deleters_lock(deleters());
  Use& use = use_of(storage, device);
  const auto same = [&](const CpuEvent& known) { return known.stream == stream; };
  use.users.reserve(use.users.size() + use.pins.size() + 1);
  if (std::none_of(use.users.begin(), use.users.end(), same)) use.users.push_back(user);
  use.kept_device = std::move(device);
}

void Blocks::pin(const c10::Storage& storage, const CpuStream& stream, Keep device) {
  const std::lock_guard deleters_lock(deleters());
  Use& use = use_of(*storage.unsafeGetStorageImpl(), device);
  const auto same = [&](const CpuStream& known) { return known == stream; };
  use.users.reserve(use.users.size() + use.pins.size() + 1);  // the drop then needs no memory
  if (std::none_of(use.pins.begin(), use.pins.end(), same)) use.pins.push_back(stream);
  use.pinned = storage.getWeakStorageImpl();
}

void Blocks::drop_used(void* context) {
  const std::unique_ptr<Used> used(static_cast<Used*>(context));
  Use& use = used->front();
  // Destroyed last, because it may be the last reference to the owner of `blocks`. If the owner is
  // gone, nothing runs any more.
  const Keep device = use.device.lock();
  use.kept_device.reset();
  if (!device) return;
  Blocks& blocks = *use.blocks;
  Keep of_block;
  bool done = true;
  const auto storage = use.pinned ? use.pinned->lock() : nullptr;
  const std::lock_guard lock(blocks.mutex_);
  for (CpuEvent& user : use.users) user = blocks.workers_.latest(user.stream);
  if (storage) {
    for (const CpuStream& pin : use.pins) use.users.push_back(blocks.workers_.latest(pin));
  }
  for (const CpuEvent& user : use.users) done = done && blocks.workers_.done(user);
  // If there is nothing to wait for, the storage is freed here, as it would be without us.
  if (done) return;
  // A deferred block does not keep its own device alive: otherwise neither would ever be freed.
  if (use.original.get_deleter() == &Blocks::return_block) {
    Block& block = *static_cast<Block*>(use.original.get());
    if (block.blocks == &blocks) of_block = std::move(block.device);
  }
  blocks.deferred_.splice(blocks.deferred_.end(), *used);
}

std::optional<CpuStream> Blocks::owner(const c10::StorageImpl& storage) const {
  const std::lock_guard lock(deleters());
  const at::DataPtr& pointer = storage.data_ptr();
  const void* context = pointer.get_context();
  c10::DeleterFnPtr deleter = pointer.get_deleter();
  while (deleter == &Blocks::drop_used) {
    const Use& use = static_cast<const Used*>(context)->front();
    context = use.original.get();
    deleter = use.original.get_deleter();
  }
  if (deleter != &Blocks::return_block) return std::nullopt;
  const Block& block = *static_cast<const Block*>(context);
  return block.blocks == this ? std::optional(block.stream) : std::nullopt;
}

bool Blocks::harmless(const Original& original) const {
  const c10::DeleterFnPtr deleter = original.get_deleter();
  return !original || deleter == &Blocks::return_block ||
         deleter == c10::GetDefaultCPUAllocator()->raw_deleter();
}

Blocks::Used Blocks::take_done() noexcept {
  Used done;
  const std::lock_guard lock(mutex_);
  for (auto at = deferred_.begin(); at != deferred_.end();) {
    const auto next = std::next(at);
    const bool ended = std::all_of(at->users.begin(), at->users.end(),
                                   [&](const CpuEvent& user) { return workers_.done(user); });
    if (ended) done.splice(done.end(), deferred_, at);
    at = next;
  }
  return done;
}

void Blocks::dispose(Used&& uses) noexcept {
  while (!uses.empty()) {
    Used one;
    one.splice(one.end(), uses, uses.begin());
    Original& original = one.front().original;
    if (harmless(original)) continue;
    std::shared_ptr<Original> shared;
    try {
      shared = std::make_shared<Original>(std::move(original));
      workers_.give(janitor_, {[shared] { shared->reset(); }});
    } catch (...) {
      // There was no memory or thread for it. It stays deferred, for another try.
      if (shared) original = std::move(*shared);
      const std::lock_guard lock(mutex_);
      deferred_.splice(deferred_.end(), one);
      deferred_.splice(deferred_.end(), uses);
    }
  }
}

void Blocks::collect() noexcept {
  const std::lock_guard collecting(collecting_);
  dispose(take_done());
  take_surplus(cache_bytes_max_);
}

bool Blocks::relieve() {
  std::vector<CpuEvent> events;
  {
    const std::lock_guard lock(mutex_);
    for (const Use& use : deferred_)
      events.insert(events.end(), use.users.begin(), use.users.end());
    for (const auto& [key, bucket] : buckets_) {
      for (const Block& block : bucket.idle) events.push_back(block.returned);
    }
  }
  for (const CpuEvent& event : events) workers_.await(event);
  const std::lock_guard collecting(collecting_);  // another thread's frees are complete now
  dispose(take_done());
  return !take_surplus(0).empty() || !events.empty();
}

std::int64_t Blocks::in_use_bytes() const {
  const std::lock_guard lock(mutex_);
  return in_use_bytes_;
}

std::int64_t Blocks::cached_bytes() const {
  const std::lock_guard lock(mutex_);
  return cached_bytes_;
}

std::int64_t Blocks::deferred() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::int64_t>(deferred_.size());
}

}  // namespace ferry::real
