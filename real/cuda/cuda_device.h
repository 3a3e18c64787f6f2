// A CUDA device as the core's Device (shared/seam/device.h): LibTorch's streams, events and caching
// allocator, and a pinned pool of our own (real/cuda/host_pool.h).
//
//   CudaDevice device({.index = 0});
//   Offloader<CudaDevice, TorchAutograd> offloader(device, ...);
//
// A handle is copied freely; its copies share two lanes and the host pools, and any thread may
// call. One handle serves one device: its streams, storages and host buffers go to no other.
//
// Lanes are streams of LibTorch's pool of high priority: it has 32 of them and gives them out in
// turn, and users take theirs from the one of default priority, so the lanes are seldom shared.
// (Priority means nothing to a copy.) They are non-blocking: the default stream does not wait for
// them by itself.
//
// Storages come from PyTorch's caching allocator and stay ordinary ones: resizing, record_stream
// and memory statistics see them as its own. Memory of another allocator, a blob or a tensor of
// another process, is not `on_device`: nothing could keep its bytes alive under a copy, so it is
// not offloaded.
//
// Errors carry CUDA's text (c10::Error), or LibTorch's for out of memory; a call that threw
// enqueued nothing, and the current device and stream are as before. An asynchronous error of
// CUDA's is final: every later call throws it. Then, and at the end of the process, when the
// runtime may be gone, memory that cannot be freed is leaked.
//
// Not modelled: CUDA graphs (a call under stream capture fails), a memory limit of a container
// (host_usage is the machine's unless an option says otherwise).
//
// This header needs no CUDA headers.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>
#include <c10/core/StreamGuard.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "real/tensors/span.h"
#include "real/tensors/torch_tensors.h"
#include "shared/seam/device.h"

namespace ferry::real {

class CudaSnapshot;

struct CudaDeviceOptions {
  c10::DeviceIndex index = -1;  // -1: the calling thread's current device
  // The limit on pinned memory.
  std::int64_t pinned_bytes_max = std::numeric_limits<std::int64_t>::max();
  // The limit on freed memory that stays pinned; -1: the most that was ever in use.
  std::int64_t pinned_cache_bytes_max = -1;
  // None: the machine's memory (/proc/meminfo). May be called on any thread; must not throw.
  std::function<HostUsage()> host_usage = {};
};

struct CudaStatistics {
  std::int64_t events_live = 0;
  std::int64_t host_in_use_bytes = 0;  // bytes pinned or pageable
  std::int64_t pinned_bytes = 0;       // bytes in use, or cached
  std::int64_t lost_bytes = 0;         // leaked: CUDA could not tell if their copies are done
};

class CudaState;

// Host bytes, returned by release_host. One that dies otherwise waits for the whole device.
class CudaHostBuffer {
 public:
  CudaHostBuffer() = default;
  CudaHostBuffer(CudaHostBuffer&& other) noexcept;
  CudaHostBuffer& operator=(CudaHostBuffer&& other) noexcept;
  ~CudaHostBuffer();

  void* data() const { return data_; }
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(data_); }
  std::int64_t bytes() const { return bytes_; }

 private:
  friend class CudaDevice;
  void swap(CudaHostBuffer& other) noexcept;
  std::shared_ptr<CudaState> state_;  // none: it has no bytes
  HostMemory kind_ = HostMemory::kPinned;
  void* data_ = nullptr;
  std::int64_t bytes_ = 0;
  std::int64_t block_bytes_ = 0;
};

class CudaDevice : public TorchTensors {
 public:
  using Stream = c10::Stream;
  using Event = std::shared_ptr<const CudaSnapshot>;
  using HostBuffer = CudaHostBuffer;
  using Mutex = std::mutex;
  class StreamScope {
   public:
    StreamScope(const CudaDevice&, const Stream& stream) : guard_(stream) {}

   private:
    c10::StreamGuard guard_;
  };

  // Throws c10::Error if the device does not exist, ValueError for a wrong option.
  explicit CudaDevice(const CudaDeviceOptions& options = {});

  c10::DeviceIndex index() const;

  Stream current_stream();
  Stream lane(Lane lane);
  static bool is_host(const Stream&) { return false; }
  Event record(Step step, const Stream& stream);
  void wait(Step step, const Stream& stream, const Event& event);

  Storage allocate(Step step, std::int64_t bytes, const Stream& stream);
  void record_use(Step step, const Storage& storage, const Stream& stream);

  HostBuffer allocate_host(Step step, std::int64_t bytes, HostMemory kind);
  void release_host(Step step, HostBuffer&& host, std::span<const Event> events) noexcept;
  HostUsage host_usage();

  void offload(Step step, const Storage& storage, std::int64_t begin, const HostBuffer& host,
               const Stream& stream);
  void reload(Step step, const HostBuffer& host, const Storage& storage, const Stream& stream);

  std::optional<Stream> owner(const Storage& storage);
  bool on_device(const Tensor& tensor);

  // Reports when each copy ran; null: stops. Waits for the current stream. A span is reported by a
  // later call into the device, once its copy is done, or by flush_spans, which waits.
  void set_observer(SpanObserver observer);
  void flush_spans();

  // Returns cached host memory that no copy uses to the system.
  void trim();
  CudaStatistics statistics();

 private:
  std::shared_ptr<CudaState> state_;
};

static_assert(Device<CudaDevice>);

}  // namespace ferry::real
