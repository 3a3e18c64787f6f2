// Device memory of the CPU device: the pools of worker streams, and blocks that streams still use
// after their storage was dropped.
//
//   drop ──► every stream of record_use done? ── no ──► deferred ── done ──┐
//                  └────────────── yes ────────────────────────────────────┴──► the original owner
//
// A block of a worker stream returns to the stream's pool at once, because later work of the stream
// follows the work that used the block. A block goes back to LibTorch's allocator, and so to every
// stream, only when the stream has done the work that it had at the return, and only if the pool
// holds more than its bound. Sizes are rounded up to 512 bytes, and only equal sizes match.
//
// pin is for a copy that the owner of the storage waits for. If the program gives the storage other
// memory during the copy (resize_, set_data_ptr), no storage owns the old memory any more, and it
// is deferred like a block in use. If the storage is dropped, the pin has no effect.
//
// record_use and pin wrap the deleter of a storage. They do not touch its data, which others may be
// reading. So storages of LibTorch and of anybody else are deferred in the same way. An unknown
// deleter may run any code and take any lock, so it runs on a thread that nobody waits for under a
// lock.
//
// Blocks in use keep the device alive; pinned, deferred and pooled blocks do not. Thread-safe.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Storage.h>
#include <c10/core/StorageImpl.h>

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "real/cpu/stream.h"
#include "real/cpu/workers.h"

namespace ferry::real {

class Blocks {
 public:
  using Keep = std::shared_ptr<void>;  // the device

  using Observer = std::function<void(const PoolBlock&)>;

  // `janitor` is the stream that runs unknown deleters.
  Blocks(Workers& workers, CpuStream janitor, std::int64_t cache_bytes_max, Observer observer);

  // Allocates from the pool of a worker stream. Throws c10::Error if there is no memory.
  at::DataPtr allocate(std::int64_t bytes, const CpuStream& stream, Keep device);
  void record_use(c10::StorageImpl& storage, const CpuStream& stream, Keep device);
  void pin(const c10::Storage& storage, const CpuStream& stream, Keep device);
  // Returns the stream of the pool, or none if the storage is not from a pool of this device.
  std::optional<CpuStream> owner(const c10::StorageImpl& storage) const;

  // Guards the deleters of all storages against record_use. It is taken before any other lock.
  static std::mutex& deleters();

  // Frees deferred blocks that no stream uses any more, and blocks beyond the bound of the pools.
  // Runs no unknown code.
  void collect() noexcept;
  // For lack of memory: waits for deferred and pooled blocks, and frees them. False if there are
  // none.
  bool relieve();

  std::int64_t in_use_bytes() const;
  std::int64_t cached_bytes() const;
  std::int64_t deferred() const;

 private:
  using Original = std::unique_ptr<void, c10::DeleterFnPtr>;

  // A block of memory of a pool.
  struct Block {
    Blocks* blocks = nullptr;
    Keep device;
    CpuStream stream;
    std::int64_t size = 0;
    at::DataPtr memory;
    CpuEvent returned;              // the stream's work at the return
    std::uint64_t returned_at = 0;  // order of returns
    std::list<Block>::iterator self;
  };
  // The blocks of one stream and size. The block that was returned last is at the back.
  struct Bucket {
    std::list<Block> idle;
    std::int64_t out = 0;
  };
  using Key = std::pair<std::int32_t, std::int64_t>;
  // The own deleter of a storage, and the streams that use the storage.
  struct Use {
    Blocks* blocks = nullptr;  // valid while the device lives
    std::weak_ptr<void> device;
    Keep kept_device;  // keeps the device alive while there are users
    Original original{nullptr, nullptr};
    std::vector<CpuEvent> users;  // after the drop: their work until then
    std::vector<CpuStream> pins;  // users that end while the storage lives
    std::optional<c10::weak_intrusive_ptr<c10::StorageImpl>> pinned;
  };
  // The data pointer of a storage owns such a list with one entry. The entry moves to the deferred
  // ones.
  using Used = std::list<Use>;

  void tell(const Block& block, bool out) const;
  at::DataPtr hand_out(Bucket& bucket, std::list<Block>& from);
  static void return_block(void* context);
  Use& use_of(c10::StorageImpl& storage, const Keep& device);
  static void drop_used(void* context);
  bool harmless(const Original& original) const;
  void dispose(Used&& uses) noexcept;
  Used take_done() noexcept;
  std::list<Block> take_surplus(std::int64_t bytes_max) noexcept;

  Workers& workers_;
  const CpuStream janitor_;
  const std::int64_t cache_bytes_max_;
  const Observer observer_;

  std::mutex collecting_;  // one thread collects at a time; taken before mutex_
  mutable std::mutex mutex_;
  std::list<Block> out_;
  std::map<Key, Bucket> buckets_;
  std::int64_t in_use_bytes_ = 0;
  std::int64_t cached_bytes_ = 0;
  std::uint64_t returns_ = 0;
  Used deferred_;  // dropped, but not freed yet
};

}  // namespace ferry::real
