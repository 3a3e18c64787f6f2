// The CPU as a device: LibTorch's CPU tensors, worker threads for streams, and a host tier in
// memory or in a file.
//
// A host thread that computes is the inline stream: what it did is done, so its events are, and a
// wait there blocks until the event is done. The lanes are worker threads, started by their first
// task. (More workers can be made, and be made current: tests have streams that compute that way.)
//
// A handle is copied freely. The device ends with its last handle, storage and host buffer; what
// its workers were given is done first.
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

// Bytes throughout.
struct CpuDeviceOptions {
  // The host tier is a file in this directory; none: it is memory.
  std::optional<DiskOptions> disk = {};
  // With a disk: fixes glibc's thresholds, so that freed memory leaves the process
  // (real/cpu/malloc_thresholds.h).
  bool fix_malloc = true;
  // Bounds the host tier in memory, and what it keeps for reuse beyond what is in use.
  std::int64_t host_bytes_max = kUnlimited;
  std::int64_t host_cache_bytes_max = std::int64_t{1} << 30;
  // What the pools of worker streams keep for reuse.
  std::int64_t pool_cache_bytes_max = std::int64_t{64} << 20;
  // For tests: how tasks are timed (null: as they come), and the disk's system calls.
  std::shared_ptr<Pace> pace = nullptr;
  std::shared_ptr<DiskIo> disk_io = nullptr;
  // Told of each block of the pools of worker streams, when it is handed out and before it may be
  // handed out again: for logs. On any thread; must not throw, and must not call the device.
  std::function<void(const PoolBlock&)> pool_observer = nullptr;
};

// For tests and reports; in bytes but for the counts.
struct CpuDeviceUsage {
  std::int64_t host_bytes = 0;         // of the host tier, in use or waiting for an event
  std::int64_t host_cached_bytes = 0;  // kept for reuse
  std::int64_t pool_bytes = 0;         // storages of worker streams
  std::int64_t pool_cached_bytes = 0;  // kept for reuse
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

  // Throws DiskError where the disk's directory does not serve, std::invalid_argument for a
  // negative limit.
  explicit CpuDevice(CpuDeviceOptions options = {});

  // The Device concept (shared/seam/device.h).

  Stream current_stream() const;
  Stream lane(Lane lane) const;
  static bool is_host(const Stream& stream) { return stream.is_inline(); }

  Event record(Step step, const Stream& stream);
  // On the inline stream: blocks the calling thread, and throws the event's error. On a worker:
  // does not block, and throws the error of an event that is known to have failed.
  void wait(Step step, const Stream& stream, const Event& event);

  // From LibTorch's CPU allocator, or for a worker from its pool. Throws c10::Error where there is
  // no memory.
  Storage allocate(Step step, std::int64_t bytes, const Stream& stream);
  void record_use(Step step, const Storage& storage, const Stream& stream);

  HostBuffer allocate_host(Step step, std::int64_t bytes, HostMemory memory);
  void release_host(Step step, HostBuffer&& host, std::span<const Event> events) noexcept;
  // Of the machine's memory, or of the disk's limit (without one: of the file system), what this
  // device's host tier holds.
  HostUsage host_usage() const;

  // On the inline stream both copies are done when they return, and throw what goes wrong.
  void offload(Step step, const Storage& storage, std::int64_t begin, const HostBuffer& host,
               const Stream& stream);
  void reload(Step step, const HostBuffer& host, const Storage& storage, const Stream& stream);

  // The stream of the pool for worker streams' storages; all others are the inline stream's.
  std::optional<Stream> owner(const Storage& storage) const;
  bool on_device(const Tensor& tensor) const;

  // Beyond the concept.

  // Is told of each copy when it is done, before any wait for it returns: on the worker, or on the
  // thread that copies inline. Null: nobody. When this returns, the previous one is not being
  // called and will not be.
  void set_observer(SpanObserver observer);

  // A worker stream that computes. `name`: of its thread, of which Linux shows 15 characters.
  Stream new_stream(const std::string& name);
  // Gives a kernel to a stream; on the inline stream it runs now.
  void enqueue(const Stream& stream, std::function<void()> kernel);
  // Blocks until all that was given to workers is done, and what waited for it has gone back.
  // Throws nothing: errors stay in their events.
  void finish() noexcept;

  CpuDeviceUsage usage() const;

 private:
  friend class CpuStreamGuard;
  struct State;
  std::shared_ptr<State> state_;
};

// Bytes of the host tier. Where one dies without release_host, its bytes go back when everything
// that the workers had been given by then is done.
class CpuDevice::HostBuffer {
 public:
  HostBuffer() = default;
  HostBuffer(HostBuffer&& other) noexcept;
  HostBuffer& operator=(HostBuffer&& other) noexcept;
  ~HostBuffer();

  // Where its bytes are: in memory or, from kFileAddresses on, in the file. 0 for none.
  static constexpr std::uint64_t kFileAddresses = std::uint64_t{1} << 58;
  std::uint64_t address() const;

 private:
  friend class CpuDevice;
  HostBuffer(std::shared_ptr<State> state, HostBlock* block);
  void give_back() noexcept;

  std::shared_ptr<State> state_;
  HostBlock* block_ = nullptr;
};

// While it lives, the calling thread computes on `stream`: current_stream() of its device says so.
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
