// The CPU as a device: LibTorch's CPU tensors, worker threads as streams, and a host tier in memory
// or in a file.
//
// The threads that compute are the inline stream. Its work is done when a call returns, so its
// events are done too; a wait on it blocks the thread until the event is done. The lanes are worker
// threads, which start with their first task. (Tests make more workers, and compute on them.)
//
// A handle can be copied freely. The device ends with its last handle, storage and host buffer; its
// workers finish their tasks first.
//
// Errors. If a copy fails, the event recorded after it keeps the cause, and every wait for that
// event throws it. A reload of a buffer whose offload failed fails with the same cause. A lane goes
// on: a failed copy affects only the copies that the same thread gave the lane before it recorded
// the event. A worker that computes skips all tasks after the failed one, until a wait for one of
// its events has thrown the cause.
//
// It does not model page-locked memory (both kinds of HostMemory are the same), NUMA, or other
// processes that share a storage. A storage in use on a worker (record_use) can neither be lazily
// cloned nor be moved to shared memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "real/cpu/host_tier.h"
#include "real/cpu/pace.h"
#include "real/cpu/stream.h"
#include "real/disk/disk_store.h"
#include "real/tensors/span.h"
#include "real/tensors/torch_tensors.h"
#include "shared/seam/device.h"
#include "shared/seam/options.h"

namespace ferry::real {

// Sizes are in bytes.
struct CpuDeviceOptions {
  // The host tier is a file in this directory, or memory if none.
  std::optional<DiskOptions> disk = {};
  // With a disk: set glibc's thresholds, so that freed memory goes back to the system
  // (real/cpu/malloc_thresholds.h).
  bool fix_malloc = true;
  // The limit of a host tier in memory, and of what it caches for reuse.
  std::int64_t host_bytes_max = kUnlimited;
  std::int64_t host_cache_bytes_max = std::int64_t{1} << 30;
  // The limit of the memory that pools of worker streams cache for reuse.
  std::int64_t pool_cache_bytes_max = std::int64_t{64} << 20;
  // Without a disk: if the lane is idle, the calling thread itself makes copies up to this size. To
  // wake a worker would cost more.
  std::int64_t brief_bytes_max = std::int64_t{32} << 10;
  // For tests: the timing of tasks (null: natural timing), and the system calls of the disk.
  std::shared_ptr<Pace> pace = nullptr;
  std::shared_ptr<DiskIo> disk_io = nullptr;
  // Called for each block of the pools of worker streams: after the block is handed out, and before
  // it can be handed out again. It is for logs. It may be called on any thread, must not throw, and
  // must not call the device.
  std::function<void(const PoolBlock&)> pool_observer = nullptr;
};

// For tests and reports. Sizes are in bytes.
struct CpuDeviceUsage {
  std::int64_t host_bytes = 0;         // in use, or waiting for an event
  std::int64_t host_cached_bytes = 0;  // cached for reuse
  std::int64_t pool_bytes = 0;         // in storages from worker pools
  std::int64_t pool_cached_bytes = 0;  // cached for reuse
  std::int64_t deferred_blocks = 0;    // dropped storages that a stream may still use
  std::int64_t tasks = 0;              // given to workers and not done
};

class CpuDevice : public TorchTensors {
 public:
  using Stream = CpuStream;
  using Event = CpuEvent;
  using Mutex = std::mutex;
  class HostBuffer;
  class StreamScope;

  // Throws DiskError if the disk's directory cannot be used, ValueError for a negative limit.
  explicit CpuDevice(CpuDeviceOptions options = {});

  // These implement the Device concept (shared/seam/device.h).

  Stream current_stream() const;
  Stream lane(Lane lane) const;
  static bool is_host(const Stream& stream) { return stream.is_inline(); }

  Event record(Step step, const Stream& stream);
  // On the inline stream it blocks the calling thread, and throws the error of the event. On a
  // worker it does not block, and throws if the event is known to have failed.
  void wait(Step step, const Stream& stream, const Event& event);

  // Allocates from LibTorch's CPU allocator, or from the pool of a worker. Throws c10::Error if
  // there is no memory.
  Storage allocate(Step step, std::int64_t bytes, const Stream& stream);
  void record_use(Step step, const Storage& storage, const Stream& stream);

  HostBuffer allocate_host(Step step, std::int64_t bytes, HostMemory memory);
  void release_host(Step step, HostBuffer&& host, std::span<const Event> events) noexcept;
  // Returns how much this device's host tier uses of the machine's memory, or of the disk's limit
  // (without a limit: of the file system).
  HostUsage host_usage() const;

  // On the inline stream both copies are done when they return, and they throw their errors.
  void offload(Step step, const Storage& storage, std::int64_t begin, const HostBuffer& host,
               const Stream& stream);
  void reload(Step step, const HostBuffer& host, const Storage& storage, const Stream& stream);

  // Returns the worker whose pool the storage is from; all other storages belong to the inline
  // stream.
  std::optional<Stream> owner(const Storage& storage) const;
  bool on_device(const Tensor& tensor) const;

  // The calls below are not part of the concept.

  // Sets a function that is called for each copy when it is done, before any wait for the copy
  // returns: on the worker, or on the thread that copies inline. Null: none. When set_observer
  // returns, the previous function is not running and will not be called again.
  void set_observer(SpanObserver observer);

  // Makes a worker stream that computes. `name` is the name of its thread; Linux shows 15
  // characters.
  Stream new_stream(const std::string& name);
  // Gives a kernel to a stream. On the inline stream it runs now.
  void enqueue(const Stream& stream, std::function<void()> kernel);
  // Blocks until all work of the workers is done and the blocks that waited for it are back. Does
  // not throw: errors stay in their events.
  void finish() noexcept;

  CpuDeviceUsage usage() const;

 private:
  friend class CpuStreamGuard;
  struct State;
  std::shared_ptr<State> state_;
};

// Bytes of the host tier. If a buffer is destroyed without release_host, its bytes go back after
// all work that the workers have at that time.
class CpuDevice::HostBuffer {
 public:
  HostBuffer() = default;
  HostBuffer(HostBuffer&& other) noexcept;
  HostBuffer& operator=(HostBuffer&& other) noexcept;
  ~HostBuffer();

  // Returns the address of its bytes: in memory, or in the file with offset kFileAddresses. 0 if
  // there are no bytes.
  static constexpr std::uint64_t kFileAddresses = std::uint64_t{1} << 58;
  std::uint64_t address() const;

 private:
  friend class CpuDevice;
  HostBuffer(std::shared_ptr<State> state, HostBlock* block);
  void give_back() noexcept;

  std::shared_ptr<State> state_;
  HostBlock* block_ = nullptr;
};

// While it lives, the calling thread computes on `stream`: it is current_stream() of its device.
class CpuStreamGuard {
 public:
  explicit CpuStreamGuard(const CpuStream& stream);
  CpuStreamGuard(const CpuStreamGuard&) = delete;
  CpuStreamGuard& operator=(const CpuStreamGuard&) = delete;
  ~CpuStreamGuard();

 private:
  CpuStream before_;
};

class CpuDevice::StreamScope {
 public:
  StreamScope(const CpuDevice&, const CpuStream& stream) : guard_(stream) {}

 private:
  CpuStreamGuard guard_;
};

static_assert(Device<CpuDevice>);

}  // namespace ferry::real
