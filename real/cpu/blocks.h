// Device memory of the CPU device: the pools of worker streams, and blocks that are still in use
// after their storage was dropped.
//
//   drop ──► every stream of record_use done? ── no ──► deferred ── done ──┐
//                  └────────────── yes ────────────────────────────────────┴──► the original owner
//
// A block of a worker stream goes back to that stream's pool at once: what the stream is given next
// follows what used the block. It leaves for LibTorch's allocator, and so for every stream, when
// the stream has done what it had been given at the return, and only where the pool holds more
// than its bound. Sizes are rounded up to 512 bytes and matched exactly.
//
// pin is for a copy that the storage's owner knows to outlive, but for a program that gives the
// storage other memory under it (resize_, set_data_ptr): then the memory, which is of no storage
// any more, is deferred like a block in use. A storage that is dropped goes as if it had no pin.
//
// record_use and pin put a deleter of ours around a storage's own (never around its data, which
// others may be reading): a storage of LibTorch's or of anybody's is deferred alike. A deleter that
// we do not know may run any code, take any lock: it runs on a thread that nobody waits for while
// holding one.
//
// What is out holds the device; what is pinned, deferred or pooled does not. Thread-safe.
#pragma once

#include <c10/core/Allocator.h>
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

  // `janitor`: the stream that runs deleters that we do not know.
  Blocks(Workers& workers, CpuStream janitor, std::int64_t cache_bytes_max, Observer observer);

  // From the pool of a worker stream. Throws c10::Error where there is no memory.
  at::DataPtr allocate(std::int64_t bytes, const CpuStream& stream, Keep device);
  void record_use(c10::StorageImpl& storage, const CpuStream& stream, Keep device);
  void pin(const c10::Storage& storage, const CpuStream& stream, Keep device);
  // None for what is not of a pool of this device.
  std::optional<CpuStream> owner(const c10::StorageImpl& storage) const;

  // Guards every storage's deleter against record_use; taken before any other lock.
  static std::mutex& deleters();

  // Frees what was deferred and is done, and what the pools hold beyond their bound. Runs no code
  // that we do not know.
  void collect() noexcept;
  // Memory is short: waits for all that is deferred or pooled, and frees it. False: there is none.
  bool relieve();

  std::int64_t in_use_bytes() const;
  std::int64_t cached_bytes() const;
  std::int64_t deferred() const;

 private:
  using Original = std::unique_ptr<void, c10::DeleterFnPtr>;

  // Memory of a pool.
  struct Block {
    Blocks* blocks = nullptr;
    Keep device;
    CpuStream stream;
    std::int64_t size = 0;
    at::DataPtr memory;
    CpuEvent returned;              // the stream's work at the return
    std::uint64_t returned_at = 0;  // in the order of returns
    std::list<Block>::iterator self;
  };
  // Of one stream and size; the block returned last is at the back.
  struct Bucket {
    std::list<Block> idle;
    std::int64_t out = 0;
  };
  using Key = std::pair<std::int32_t, std::int64_t>;
  // A storage's own deleter, and the streams that use the storage.
  struct Use {
    Blocks* blocks = nullptr;  // while there is a device
    std::weak_ptr<void> device;
    Keep kept_device;  // the same, where there are users
    Original original{nullptr, nullptr};
    std::vector<CpuEvent> users;  // their work at the drop, from then on
    std::vector<CpuStream> pins;  // users, where this storage lives on
    std::optional<c10::weak_intrusive_ptr<c10::StorageImpl>> pinned;
  };
  // What a storage's data pointer owns: one entry, for the list of what is deferred.
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

  std::mutex collecting_;  // one collects at a time; taken before the next
  mutable std::mutex mutex_;
  std::list<Block> out_;
  std::map<Key, Bucket> buckets_;
  std::int64_t in_use_bytes_ = 0;
  std::int64_t cached_bytes_ = 0;
  std::uint64_t returns_ = 0;
  Used deferred_;  // dropped, and not yet freed
};

}  // namespace ferry::real
