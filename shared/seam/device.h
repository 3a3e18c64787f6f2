// The seam, first half: the concepts of a device that the core is written against.
//
// A device is a cheap handle that can be copied freely. Every call that orders work or manages a
// lifetime names its step. No call blocks the host unless its comment says so. There is no call
// that asks whether work is done: if a decision depended on timing, equal runs would differ. Calls
// may come from any thread. The core makes the calls for one parcel one at a time, under its own
// lock.
//
// Errors are exceptions and leave the device as it was: a copy that threw was not enqueued. An
// asynchronous error is kept in its event, and the wait for that event throws it.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "shared/seam/step.h"

namespace ferry {

// The two copy streams: one copies device to host, the other host to device.
enum class Lane : std::uint8_t { kDeviceToHost, kHostToDevice };

enum class HostMemory : std::uint8_t { kPinned, kPageable };

// The bytes [begin, end) of a storage, counted from its start.
struct Extent {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t bytes() const { return end - begin; }
  bool covers(const Extent& other) const { return begin <= other.begin && other.end <= end; }
  bool operator==(const Extent&) const = default;
};

struct HostUsage {
  std::int64_t used_bytes = 0;
  std::int64_t total_bytes = 0;
};

// Recomputing needs this much: streams, and the parts of a tensor.
template <class D>
concept ComputeDevice = requires(D device, const typename D::Stream stream,
                                 const typename D::Event event, const typename D::Storage storage,
                                 const typename D::Tensor tensor, const typename D::Version version,
                                 const typename D::Metadata metadata, Step step) {
  requires std::copyable<D>;
  requires std::copyable<typename D::Stream> && std::equality_comparable<typename D::Stream>;
  // A point in the work of a stream. A default event was never recorded; waiting for it does
  // nothing.
  requires std::copyable<typename D::Event> && std::default_initializable<typename D::Event>;
  // Owns its bytes: they live while a Storage, or a Tensor on it, lives. Default: no storage.
  requires std::copyable<typename D::Storage> && std::default_initializable<typename D::Storage>;
  // A view of a storage. Copies of a Tensor share one version counter.
  requires std::copyable<typename D::Tensor>;
  // A handle on a version counter, which in-place writes increase. It may outlive the tensor.
  requires std::copyable<typename D::Version>;
  requires std::default_initializable<typename D::Mutex>;

  // Returns the stream on which the calling thread computes *now*. The core never caches it.
  { device.current_stream() } -> std::same_as<typename D::Stream>;
  // While a scope lives, the thread that made it computes on that stream.
  requires std::constructible_from<typename D::StreamScope, D, typename D::Stream>;

  // Returns a new event that follows all work enqueued on `stream` so far.
  { device.record(step, stream) } -> std::same_as<typename D::Event>;
  // Makes work that is enqueued on `stream` later wait for the work before `event`.
  { device.wait(step, stream, event) } -> std::same_as<void>;
  // Marks the storage as in use on `stream`, like PyTorch's record_stream: after the last reference
  // is dropped, its bytes are not reused before the work enqueued on `stream` until then is done.
  { device.record_use(step, storage, stream) } -> std::same_as<void>;

  { device.storage(tensor) } -> std::same_as<typename D::Storage>;
  // True if the tensor's bytes are on this device.
  { device.on_device(tensor) } -> std::same_as<bool>;
  { device.version(tensor) } -> std::same_as<typename D::Version>;
  { device.read(version) } -> std::same_as<std::uint64_t>;
  // Shape, dtype and device. A recomputed tensor must equal the saved one in these.
  requires std::copyable<typename D::Metadata> && std::equality_comparable<typename D::Metadata>;
  { device.metadata(tensor) } -> std::same_as<typename D::Metadata>;
  { device.describe(metadata) } -> std::same_as<std::string>;
  // Returns the same tensor without its graph.
  { device.detach(tensor) } -> std::same_as<typename D::Tensor>;
};

// Pipelines need more: several devices, with a handle for each, and copies between them.
template <class D>
concept PipelineDevice = ComputeDevice<D> &&
    requires(D device, D& other, const typename D::Stream stream, const typename D::Tensor tensor,
             const typename D::Version version, Step step, std::uint32_t microbatch) {
  // Returns the stream on which the calling thread computes on this device, even if another device
  // is current.
  { device.compute_stream() } -> std::same_as<typename D::Stream>;
  // Returns the stream of this device that receives copies from other devices for this micro-batch.
  { device.transfer_stream(microbatch) } -> std::same_as<typename D::Stream>;
  // Copies the tensor to `other`. `stream` is a stream of `other`: the copy runs on it, and the
  // result is allocated from its pool. If both are the same device, it returns the tensor itself,
  // without its graph.
  { device.transfer(step, tensor, other, stream) } -> std::same_as<typename D::Tensor>;
  // Returns an id that no other counter gets while a handle on this one lives; 0 if there is none.
  { device.identity(version) } -> std::same_as<std::uint64_t>;
};

// Offloading needs this much.
template <class D>
concept Device = ComputeDevice<D> &&
    requires(D device, const typename D::Stream stream, const typename D::Storage storage,
             const typename D::WeakStorage weak_storage, typename D::HostBuffer host,
             const typename D::Tensor tensor, const typename D::Layout layout,
             const typename D::Version version, std::span<const typename D::Event> events,
             Step step, std::int64_t bytes) {
  requires std::copyable<typename D::WeakStorage>;
  // Owns host bytes until release_host is called. Default: no bytes.
  requires std::movable<typename D::HostBuffer> &&
      std::default_initializable<typename D::HostBuffer>;
  requires std::copyable<typename D::Layout>;

  { device.lane(Lane{}) } -> std::same_as<typename D::Stream>;
  // True if the stream stands for host threads, as on a computing CPU. A wait on such a stream
  // blocks the calling thread, so each thread has to wait itself.
  { device.is_host(stream) } -> std::same_as<bool>;

  // Returns a storage of `bytes` from the pool of `stream`. It can be used on that stream at once,
  // on another stream after a wait. When the last reference is dropped the pool can reuse it at
  // once, even if other streams still use it.
  { device.allocate(step, bytes, stream) } -> std::same_as<typename D::Storage>;

  // Returns host bytes for copies. If there is no room, the error is also a HostFull
  // (shared/seam/host_full.h).
  { device.allocate_host(step, bytes, HostMemory{}) } -> std::same_as<typename D::HostBuffer>;
  // Gives host bytes back. They are not rewritten or freed before all `events` are done. Never
  // throws.
  { device.release_host(step, std::move(host), events) }
  noexcept->std::same_as<void>;
  { device.host_usage() } -> std::same_as<HostUsage>;

  // Copies bytes of `storage`, from `begin` on, into the host buffer until it is full, on `stream`.
  // With pageable memory either copy may block the host.
  { device.offload(step, storage, bytes, host, stream) } -> std::same_as<void>;
  // Copies the whole buffer to the start of `storage`, on `stream`.
  { device.reload(step, host, storage, stream) } -> std::same_as<void>;

  { device.bytes(storage) } -> std::same_as<std::int64_t>;
  { device.use_count(storage) } -> std::same_as<std::int64_t>;
  // Returns the stream of the pool that the storage returns to; none if it is unknown.
  { device.owner(storage) } -> std::same_as<std::optional<typename D::Stream>>;
  // Returns an id that no other storage gets while a WeakStorage of this one lives.
  { device.identity(storage) } -> std::same_as<std::uint64_t>;
  // Returns the current address of the bytes. Another storage may get the address later, so the
  // address does not identify a storage.
  { device.address(storage) } -> std::same_as<std::uint64_t>;
  { device.weak(storage) } -> std::same_as<typename D::WeakStorage>;
  // Returns the storage if it still lives, else an empty one.
  { device.lock(weak_storage) } -> std::same_as<typename D::Storage>;
  { device.exists(storage) } -> std::same_as<bool>;

  { device.layout(tensor) } -> std::same_as<typename D::Layout>;
  // Returns the range of bytes in its storage that a tensor of this layout touches.
  { device.extent(layout) } -> std::same_as<Extent>;
  { device.identity(version) } -> std::same_as<std::uint64_t>;
  // True if nothing else shares the counter, so all tensors that it counted for are gone.
  { device.unique(version) } -> std::same_as<bool>;
  // Returns a tensor of this layout on `storage`, which holds the bytes of the original storage
  // from offset `bytes` on. It shares the version counter of the original: a write to it counts as
  // a write to the saved tensor.
  { device.restore(storage, layout, bytes, version) } -> std::same_as<typename D::Tensor>;
};

}  // namespace ferry
