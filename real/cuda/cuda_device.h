// A CUDA device as the core's Device (shared/seam/device.h): LibTorch's streams, events and caching
// allocator, and a pinned host pool of our own (real/cuda/host_pool.h).
//
//   CudaDevice device({.index = 0});
//   Offloader<CudaDevice, TorchAutograd> offloader(device, ...);
//
// A handle can be copied freely. Copies share two lanes and the host pools. Any thread may call. A
// handle serves one device: its streams, storages and host buffers cannot be used with another.
//
// The lanes are streams of LibTorch's high-priority pool. That pool has 32 streams, handed out in
// rotation, and users take theirs from the default-priority pool, so lanes are rarely shared with
// other code. (Priority has no effect on copies.) They are non-blocking: the default stream does
// not wait for them implicitly.
//
// Storages come from PyTorch's caching allocator and are ordinary ones: resizing, record_stream and
// memory statistics work on them. Memory of another allocator, a blob, or a tensor of another
// process is not `on_device`: nothing could keep its bytes alive during a copy, so it is not
// offloaded.
//
// Errors are c10::Error with CUDA's text, or LibTorch's out-of-memory error. A call that threw
// enqueued nothing, and left the current device and stream unchanged. An asynchronous CUDA error is
// final: every later call throws it. Memory that cannot be freed, then or at the end of the process
// when the runtime may be gone, is leaked.
//
// CUDA graphs are not supported: a call under stream capture fails. A container's memory limit is
// not known: host_usage is that of the machine, unless an option says otherwise.
//
// This header includes no CUDA headers.
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
  // The limit of pinned memory.
  std::int64_t pinned_bytes_max = std::numeric_limits<std::int64_t>::max();
  // The limit of freed memory that stays pinned. -1: the most that was ever in use.
  std::int64_t pinned_cache_bytes_max = -1;
  // If empty, the machine's memory is used (/proc/meminfo). May be called on any thread; must not
  // throw.
  std::function<HostUsage()> host_usage = {};
};

struct CudaStatistics {
  std::int64_t events_live = 0;
  std::int64_t host_in_use_bytes = 0;  // pinned or pageable
  std::int64_t pinned_bytes = 0;       // in use or cached
  std::int64_t lost_bytes = 0;         // leaked: CUDA could not say if their copies are done
};

class CudaState;

// Host bytes. Give them to release_host; otherwise the destructor waits for the whole device.
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
  std::shared_ptr<CudaState> state_;  // null: it has no bytes
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

  // Throws c10::Error if the device does not exist, ValueError for an invalid option.
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

  // Reports when each copy ran; null stops. Waits for the current stream. A span is reported by a
  // later call to the device after its copy is done, or by flush_spans, which waits for all copies.
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
