// The seam, first half: the concepts of a device that the core is written against.
//
// A device is a cheap handle, copied freely. Every call that orders work or manages lifetime names
// its step. No call blocks the host unless its contract says so, and there is no query: a decision
// that depended on timing would make equal runs unequal. Calls may be made from any thread; the
// core makes those on one parcel one at a time, under its own lock.
//
// Errors are exceptions and leave the device as it was: a copy that threw was not enqueued. An
// asynchronous error travels in its event and is thrown by the wait.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "shared/seam/step.h"

namespace ferry {

// The side streams: one copies device to host, one host to device.
enum class Lane : std::uint8_t { kDeviceToHost, kHostToDevice };

enum class HostMemory : std::uint8_t { kPinned, kPageable };

// The bytes [begin, end) of a storage.
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
  // A snapshot of a stream's work. Default: never recorded, and waiting on it orders nothing.
  requires std::copyable<typename D::Event> && std::default_initializable<typename D::Event>;
  // Owning: the bytes live while a Storage, or a Tensor on it, lives. Default: none.
  requires std::copyable<typename D::Storage> && std::default_initializable<typename D::Storage>;
  // A window on a storage. Copies share the window's version counter.
  requires std::copyable<typename D::Tensor>;
  // A handle on a version counter: in-place writes bump it; it outlives the tensor.
  requires std::copyable<typename D::Version>;
  requires std::default_initializable<typename D::Mutex>;

  // The stream that the calling thread computes on *now*. Never cached by the core.
  { device.current_stream() } -> std::same_as<typename D::Stream>;
  // While it lives, the constructing thread computes on that stream.
  requires std::constructible_from<typename D::StreamScope, D, typename D::Stream>;

  // A fresh event after all work that `stream` was given so far.
  { device.record(step, stream) } -> std::same_as<typename D::Event>;
  // Work given to `stream` from now on follows the work that `event` stands for.
  { device.wait(step, stream, event) } -> std::same_as<void>;
  // The storage's bytes are not given out again before the work that `stream` has been given by the
  // time of the last drop is done (PyTorch's record_stream).
  { device.record_use(step, storage, stream) } -> std::same_as<void>;

  { device.storage(tensor) } -> std::same_as<typename D::Storage>;
  // True if the tensor's bytes are on this device.
  { device.on_device(tensor) } -> std::same_as<bool>;
  { device.version(tensor) } -> std::same_as<typename D::Version>;
  { device.read(version) } -> std::same_as<std::uint64_t>;
  // Shape, dtype and device: a recomputed tensor must equal the saved one in these.
  requires std::copyable<typename D::Metadata> && std::equality_comparable<typename D::Metadata>;
  { device.metadata(tensor) } -> std::same_as<typename D::Metadata>;
  { device.describe(metadata) } -> std::same_as<std::string>;
  // The same tensor without its graph.
  { device.detach(tensor) } -> std::same_as<typename D::Tensor>;
};

// Pipelines need more: several devices, a handle each, and copies between them.
template <class D>
concept PipelineDevice = ComputeDevice<D> &&
    requires(D device, D& other, const typename D::Stream stream, const typename D::Tensor tensor,
             const typename D::Version version, Step step, std::uint32_t microbatch) {
  // The stream on which the calling thread computes on this device, whichever is current.
  { device.compute_stream() } -> std::same_as<typename D::Stream>;
  // The stream on which copies from other devices for that micro-batch arrive here.
  { device.transfer_stream(microbatch) } -> std::same_as<typename D::Stream>;
  // The same values on `other`, in a storage of the pool of `stream`, which is `other`'s; the
  // copy runs there. Where both are one device: the tensor itself, without its graph.
  { device.transfer(step, tensor, other, stream) } -> std::same_as<typename D::Tensor>;
  // An identity that no other counter has while a handle on it lives; 0: there is no counter.
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
  // Owns host bytes until release_host. Default: none.
  requires std::movable<typename D::HostBuffer> &&
      std::default_initializable<typename D::HostBuffer>;
  requires std::copyable<typename D::Layout>;

  { device.lane(Lane{}) } -> std::same_as<typename D::Stream>;
  // True if the stream is the host's own threads (a computing CPU's): a wait there blocks, and each
  // thread waits for itself.
  { device.is_host(stream) } -> std::same_as<bool>;

  // A storage of `bytes` from the pool of `stream`: usable there at once, elsewhere after an edge.
  // Dropping the last reference gives it back to that pool at once, whatever still runs.
  { device.allocate(step, bytes, stream) } -> std::same_as<typename D::Storage>;

  // Host bytes, used by the copies only. What it throws where there is no room is a HostFull too
  // (shared/seam/host_full.h).
  { device.allocate_host(step, bytes, HostMemory{}) } -> std::same_as<typename D::HostBuffer>;
  // Gives them back; they are not rewritten or freed before all `events` are done. Never throws.
  { device.release_host(step, std::move(host), events) }
  noexcept->std::same_as<void>;
  { device.host_usage() } -> std::same_as<HostUsage>;

  // Copies from `begin` on as many bytes of `storage` as the buffer holds, on `stream`. With
  // pageable memory either copy may block the host.
  { device.offload(step, storage, bytes, host, stream) } -> std::same_as<void>;
  // Copies the whole buffer to the start of `storage`, on `stream`.
  { device.reload(step, host, storage, stream) } -> std::same_as<void>;

  { device.bytes(storage) } -> std::same_as<std::int64_t>;
  { device.use_count(storage) } -> std::same_as<std::int64_t>;
  // The stream of the pool that the storage returns to; none if unknown.
  { device.owner(storage) } -> std::same_as<std::optional<typename D::Stream>>;
  // An identity that no other storage gets while a WeakStorage of it lives.
  { device.identity(storage) } -> std::same_as<std::uint64_t>;
  // The present address of the bytes. It is reused after death, so it is no identity.
  { device.address(storage) } -> std::same_as<std::uint64_t>;
  { device.weak(storage) } -> std::same_as<typename D::WeakStorage>;
  // The storage if it still lives, else none.
  { device.lock(weak_storage) } -> std::same_as<typename D::Storage>;
  { device.exists(storage) } -> std::same_as<bool>;

  { device.layout(tensor) } -> std::same_as<typename D::Layout>;
  // The bytes of its storage that a tensor of this layout touches.
  { device.extent(layout) } -> std::same_as<Extent>;
  { device.identity(version) } -> std::same_as<std::uint64_t>;
  // True if no other handle or tensor shares the counter: the tensors that it counted for are gone.
  { device.unique(version) } -> std::same_as<bool>;
  // A tensor of this layout on a storage that holds the original's bytes from `bytes` on. It shares
  // the original's version counter: writing to it counts as writing the saved tensor.
  { device.restore(storage, layout, bytes, version) } -> std::same_as<typename D::Tensor>;
};

}  // namespace ferry
