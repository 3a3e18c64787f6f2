// The CPU as a device: LibTorch's CPU tensors, worker threads for streams, and a host tier in
// memory or in a file.
//
// A host thread that computes is the inline stream: what it did is done, so its events are, and a
// wait there blocks until the event is done. The lanes are worker threads, started by their first
// task. (More workers can be made, and be made current: tests have streams that compute that way.)
//
// A handle is copied freely. The device ends with its last handle, storage and host buffer; its
// workers finish their tasks first.
//
// Errors. A copy that fails carries its cause in the event recorded after it, and every wait for
// that event throws it; a reload of a buffer whose offload failed fails with the same cause. Each
// lane goes on: a copy fails alone, with what the same thread gave the lane before recording. A
// worker that computes is skipped from the failed task on, until a wait for one of its events has
// thrown the cause.
//
// Not modelled: page-locked memory (both kinds of HostMemory are the same), NUMA, other processes
// that share a storage. A storage in use on a worker (record_use) can neither be lazily cloned nor
// be moved to shared memory.
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
  // The host tier is a file in this directory; none: it is memory.
  std::optional<DiskOptions> disk = {};
  // With a disk: fixes glibc's thresholds, so that freed memory leaves the process
  // (real/cpu/malloc_thresholds.h).
  bool fix_malloc = true;
  // Bounds the host tier in memory, and what it keeps for reuse beyond what is in use.
  std::int64_t host_bytes_max = kUnlimited;
  std::int64_t host_cache_bytes_max = std::int64_t{1} << 30;
  // Bounds the memory that pools of worker streams keep for reuse.
  std::int64_t pool_cache_bytes_max = std::int64_t{64} << 20;
  // Without a disk, a copy of at most so many bytes is made by the thread that asks for it, where
  // the lane is idle: to wake a worker costs more.
  std::int64_t brief_bytes_max = std::int64_t{32} << 10;
  // For tests: the timing of tasks (null: natural), and the disk's system calls.
  std::shared_ptr<Pace> pace = nullptr;
  std::shared_ptr<DiskIo> disk_io = nullptr;
  // Called for each block of the pools of worker streams, when it is handed out and before it may
  // be handed out again: for logs. It may run on any thread, must not throw, and must not call the
  // device.
  std::function<void(const PoolBlock&)> pool_observer = nullptr;
};

// For tests and reports; sizes are in bytes.
struct CpuDeviceUsage {
  std::int64_t host_bytes = 0;         // host-tier bytes in use or waiting for an event
  std::int64_t host_cached_bytes = 0;  // kept for reuse
  std::int64_t pool_bytes = 0;         // bytes of storages from worker pools
  std::int64_t pool_cached_bytes = 0;  // kept for reuse
  std::int64_t deferred_blocks = 0;    // dropped storages that a stream may still use
  std::int64_t tasks = 0;              // tasks given to workers and not done
};

class CpuDevice : public TorchTensors {
 public:
  using Stream = CpuStream;
  using Event = CpuEvent;
  using Mutex = std::mutex;
  class HostBuffer;
  class StreamScope;

  // Throws DiskError if the disk's directory is unusable, ValueError for a negative
  // limit.
  explicit CpuDevice(CpuDeviceOptions options = {});

  // Implements the Device concept (shared/seam/device.h).

  Stream current_stream() const;
  Stream lane(Lane lane) const;
  static bool is_host(const Stream& stream) { return stream.is_inline(); }

  Event record(Step step, const Stream& stream);
  // On the inline stream it blocks the calling thread, and throws the event's error. On a worker it
  // does not block, and throws the error of an event known to have failed.
  void wait(Step step, const Stream& stream, const Event& event);

  // Allocates from LibTorch's CPU allocator or, for a worker, from its pool. Throws c10::Error if
  // there is no memory.
  Storage allocate(Step step, std::int64_t bytes, const Stream& stream);
  void record_use(Step step, const Storage& storage, const Stream& stream);

  HostBuffer allocate_host(Step step, std::int64_t bytes, HostMemory memory);
  void release_host(Step step, HostBuffer&& host, std::span<const Event> events) noexcept;
  // The share of the machine's memory, or of the disk's limit (without one: of the file system),
  // that this device's host tier holds.
  HostUsage host_usage() const;

  // On the inline stream both copies are done when they return, and throw their errors.
  void offload(Step step, const Storage& storage, std::int64_t begin, const HostBuffer& host,
               const Stream& stream);
  void reload(Step step, const HostBuffer& host, const Storage& storage, const Stream& stream);

  // The stream of a storage from a worker's pool; all other storages belong to the inline stream.
  std::optional<Stream> owner(const Storage& storage) const;
  bool on_device(const Tensor& tensor) const;

  // Calls beyond the concept.

  // Called for each copy when it is done, before any wait for it returns: on the worker, or on the
  // thread that copies inline. Null: none. When this returns, the previous one is not being called
  // and will not be.
  void set_observer(SpanObserver observer);

  // A worker stream that computes. `name` names its thread; Linux shows 15 characters.
  Stream new_stream(const std::string& name);
  // Gives a kernel to a stream; on the inline stream it runs now.
  void enqueue(const Stream& stream, std::function<void()> kernel);
  // Blocks until all work given to workers is done, and blocks that waited for it are back. Throws
  // nothing: errors stay in their events.
  void finish() noexcept;

  CpuDeviceUsage usage() const;

 private:
  friend class CpuStreamGuard;
  struct State;
  std::shared_ptr<State> state_;
};

// Bytes of the host tier. If one dies without release_host, its bytes go back when all work that
// the workers had been given by then is done.
class CpuDevice::HostBuffer {
 public:
  HostBuffer() = default;
  HostBuffer(HostBuffer&& other) noexcept;
  HostBuffer& operator=(HostBuffer&& other) noexcept;
  ~HostBuffer();

  // The address of its bytes, in memory or, from kFileAddresses on, in the file. 0 without bytes.
  static constexpr std::uint64_t kFileAddresses = std::uint64_t{1} << 58;
  std::uint64_t address() const;

 private:
  friend class CpuDevice;
  HostBuffer(std::shared_ptr<State> state, HostBlock* block);
  void give_back() noexcept;

  std::shared_ptr<State> state_;
  HostBlock* block_ = nullptr;
};

// While it lives, the calling thread computes on `stream`, its device's current_stream().
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
