// The simulated GPU as the core's Device (shared/seam/device.h): a handle on one device of a
// Machine, which must outlive it. It also has the calls that a pipeline over several devices needs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "formats/layout.h"
#include "shared/seam/device.h"
#include "shared/transfer/transfer.h"
#include "sim/gpu/machine.h"
#include "sim/gpu/mutex.h"
#include "sim/gpu/tensor.h"

namespace ferry::sim {

// Host memory. Its owner returns it with release_host().
struct HostBuffer {
  std::optional<HostBlock> block;
  bool pageable = false;

  HostBuffer() = default;
  HostBuffer(const HostBlock& host_block, bool is_pageable)
      : block(host_block), pageable(is_pageable) {}
  HostBuffer(HostBuffer&& other) noexcept
      : block(std::exchange(other.block, std::nullopt)), pageable(other.pageable) {}
  HostBuffer& operator=(HostBuffer&& other) noexcept {
    block = std::exchange(other.block, std::nullopt);
    pageable = other.pageable;
    return *this;
  }
  Range range() const {
    return {block->address, static_cast<std::uint64_t>(block->requested_bytes)};
  }
};

class SimDevice {
 public:
  using Stream = StreamId;
  using Event = EventHandle;
  using Storage = sim::Storage;
  using WeakStorage = std::weak_ptr<StorageImpl>;
  using HostBuffer = sim::HostBuffer;
  using Tensor = sim::Tensor;
  using Layout = TensorLayout;
  using Version = sim::Version;
  using Mutex = SimMutex;

  struct Metadata {
    DType dtype = DType::kF32;
    std::vector<std::int64_t> shape;
    std::uint32_t device = 0;
    bool operator==(const Metadata&) const = default;
  };

  explicit SimDevice(Machine& machine, std::uint32_t device = 0)
      : machine_(&machine), device_(device) {}

  class StreamScope {
   public:
    StreamScope(SimDevice device, Stream stream)
        : machine_(device.machine_), before_(machine_->current_stream()) {
      machine_->set_current_stream(stream);
    }
    StreamScope(const StreamScope&) = delete;
    StreamScope& operator=(const StreamScope&) = delete;
    ~StreamScope() { machine_->set_current_stream(before_); }

   private:
    Machine* machine_;
    Stream before_;
  };

  Stream current_stream() { return machine_->current_stream(); }
  Stream lane(Lane lane) { return machine_->lane(device_, lane); }
  static bool is_host(Stream) { return false; }
  Stream compute_stream() { return machine_->compute_stream(device_, 0); }
  Stream transfer_stream(std::uint32_t microbatch) {
    return machine_->transfer_stream(device_, microbatch % kArrivalStreams);
  }
  Event record(Step step, Stream stream) { return machine_->record(step, stream); }
  void wait(Step step, Stream stream, const Event& event) { machine_->wait(step, stream, event); }

  Storage allocate(Step step, std::int64_t bytes, Stream stream) {
    const bool ward = step == Step::kBringAllocate;
    return machine_->allocate(bytes, stream, step,
                              ward ? MemoryKind::kOptimizer : MemoryKind::kActivation);
  }
  void record_use(Step step, const Storage& storage, Stream stream) {
    machine_->record_use(step, storage, stream);
  }
  HostBuffer allocate_host(Step step, std::int64_t bytes, HostMemory kind) {
    return {machine_->allocate_host(step, bytes), kind == HostMemory::kPageable};
  }
  void release_host(Step step, HostBuffer&& host, std::span<const Event> events) noexcept {
    if (host.block) machine_->release_host(step, *host.block, events);
    host.block.reset();
  }
  HostUsage host_usage() const {
    return {machine_->host_pool().stats().pinned_bytes.current,
            machine_->options().host_total_bytes};
  }

  void offload(Step step, const Storage& storage, std::int64_t begin, const HostBuffer& host,
               Stream stream) {
    const Range to = host.range();
    machine_->copy(step, CopyKind::kDeviceToHost,
                   {storage->address + static_cast<std::uint64_t>(begin), to.bytes}, to, stream,
                   host.pageable);
  }
  void reload(Step step, const HostBuffer& host, const Storage& storage, Stream stream) {
    const Range from = host.range();
    machine_->copy(step, CopyKind::kHostToDevice, from, {storage->address, from.bytes}, stream,
                   host.pageable);
  }

  // Copies to device `to`, on its stream `stream`, into a block of that stream's pool. Only the
  // bytes that the tensor covers are copied; they fill a storage. On the same device nothing is
  // copied.
  Tensor transfer(Step step, const Tensor& tensor, SimDevice& to, Stream stream) {
    if (to.machine_ == machine_ && to.device_ == device_) return detach(tensor);
    TensorLayout layout = tensor->layout;
    layout.shift += layout.extent().begin;
    Tensor copy = make_tensor(machine_->allocate(layout.extent().bytes(), stream, step), layout,
                              machine_->new_version());
    if (copy->storage->block) {
      machine_->peer_copy(step, range_of(tensor), range_of(copy), device_, stream);
    }
    return copy;
  }

  // Not part of the seam: published schedulers (sim/field) use it. Copies the bytes that the tensor
  // covers, on `stream`, into a block of its pool.
  Tensor clone(const Tensor& tensor, Stream stream) {
    TensorLayout layout = tensor->layout;
    layout.shift += layout.extent().begin;
    Tensor copy = make_tensor(machine_->allocate(layout.extent().bytes(), stream), layout,
                              machine_->new_version());
    const StreamScope scope(*this, stream);
    const std::int64_t rate = machine_->options().clone_bytes_per_us;
    const std::int64_t bytes = layout.extent().bytes();
    machine_->copy_on_device("clone", range_of(tensor), range_of(copy),
                             rate > 0 ? bytes * 1000 / rate + 1 : 0);
    return copy;
  }
  // The host waits for the stream.
  void synchronize(Stream stream) { machine_->synchronize(Step::kUser, stream); }

  Storage storage(const Tensor& tensor) { return tensor->storage; }
  std::int64_t bytes(const Storage& storage) { return storage->bytes; }
  std::int64_t use_count(const Storage& storage) {
    const bool miscounted = machine_->options().fault == WorldFault::kMiscounted;
    return storage.use_count() - (miscounted ? 1 : 0);
  }
  std::optional<Stream> owner(const Storage& storage) {
    if (!storage->block) return std::nullopt;  // without bytes it has no pool
    return storage->block->stream();
  }
  std::uint64_t identity(const Storage& storage) { return storage->identity; }
  std::uint64_t address(const Storage& storage) { return storage->address; }
  WeakStorage weak(const Storage& storage) { return storage; }
  Storage lock(const WeakStorage& storage) { return storage.lock(); }
  bool exists(const Storage& storage) { return storage != nullptr; }

  bool on_device(const Tensor& tensor) {
    return tensor->storage->machine == machine_ && tensor->storage->device == device_;
  }
  // Replay needs this (shared/replay/recording.h).
  static bool plain(const Tensor&) { return true; }
  static bool dense(const Tensor& tensor) { return is_dense(tensor->layout.window->layout); }
  Layout layout(const Tensor& tensor) { return tensor->layout; }
  Extent extent(const Layout& layout) { return layout.extent(); }
  Version version(const Tensor& tensor) { return tensor->version; }
  std::uint64_t read(const Version& version) { return version->value; }
  std::uint64_t identity(const Version& version) { return version->identity; }
  bool unique(const Version& version) { return version.use_count() == 1; }
  Metadata metadata(const Tensor& tensor) {
    const ferry::Layout& layout = tensor->layout.window->layout;
    return {layout.dtype, layout.shape, tensor->storage->device};
  }
  std::string describe(const Metadata& metadata) {
    std::string text = "shape [";
    for (const std::int64_t size : metadata.shape) {
      if (text.back() != '[') text += ", ";
      text += std::to_string(size);
    }
    text += "], dtype " + std::string(name(metadata.dtype));
    if (metadata.device != 0) text += ", device " + std::to_string(metadata.device);
    return text;
  }
  Tensor detach(const Tensor& tensor) { return std::make_shared<TensorImpl>(*tensor); }
  Tensor restore(const Storage& storage, const Layout& layout, std::int64_t begin,
                 const Version& version) {
    return make_tensor(storage, {layout.window, layout.shift + begin}, version);
  }

 private:
  Machine* machine_;
  std::uint32_t device_;
};

static_assert(Device<SimDevice> && PipelineDevice<SimDevice>);

}  // namespace ferry::sim
