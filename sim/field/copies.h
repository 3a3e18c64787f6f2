// Building blocks of published schedulers (stash.h, verify/schedulers): copies to pinned memory and
// back, without any ordering. Each scheduler adds its own order; where the published one forgets
// some of it, ferry verify must find the race.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "formats/layout.h"
#include "sim/check/values.h"
#include "sim/gpu/device.h"
#include "sim/program/autograd.h"

namespace ferry::field {

// The bytes that a saved tensor covers, and the layout to restore it from them.
struct HostCopy {
  sim::HostBuffer buffer;
  sim::TensorLayout layout;
  sim::Version version;
};

inline std::int64_t bytes_of(const sim::Tensor& tensor) { return tensor->layout.extent().bytes(); }

inline sim::HostBuffer pinned(sim::SimDevice& device, std::int64_t bytes) {
  return device.allocate_host(Step::kHostAllocate, bytes, HostMemory::kPinned);
}
// Returns the buffer with only its first bytes in use. It still owns all of them.
inline sim::HostBuffer first_bytes(const sim::HostBuffer& buffer, std::int64_t bytes) {
  sim::HostBuffer part(*buffer.block, buffer.pageable);
  part.block->requested_bytes = bytes;
  return part;
}

// Returns a dense copy of a view with gaps, as clone() and contiguous() make it.
inline sim::Tensor gathered(sim::SimDevice& device, const sim::Tensor& tensor, StreamId stream) {
  sim::Machine& machine = *tensor->storage->machine;
  const Layout& view = tensor->layout.window->layout;
  const std::int64_t bytes = tensor_bytes(view);
  const auto window = std::make_shared<const sim::Window>(
      sim::Window{contiguous_layout(view.dtype, view.shape), {0, bytes}});
  sim::Tensor copy =
      sim::make_tensor(machine.allocate(bytes, stream), {window, 0}, machine.new_version());
  const Range from = range_of(tensor), to = range_of(copy);
  const std::int64_t rate = machine.options().clone_bytes_per_us;
  const sim::Time took = rate > 0 ? bytes * 1000 / rate + 1 : 0;
  const StreamId before = device.current_stream();
  machine.set_current_stream(stream);
  machine.kernel("clone", check::kGatherTag, {&from, 1}, {&to, 1}, {took, took});
  machine.set_current_stream(before);
  return copy;
}

// Copies into `buffer`, which has the right size.
inline HostCopy offload_to(sim::SimDevice& device, const sim::Tensor& tensor,
                           sim::HostBuffer buffer, StreamId stream) {
  HostCopy copy{std::move(buffer), tensor->layout, tensor->version};
  device.offload(Step::kOffload, tensor->storage, tensor->layout.extent().begin, copy.buffer,
                 stream);
  return copy;
}
inline HostCopy offload(sim::SimDevice& device, const sim::Tensor& tensor, StreamId stream) {
  return offload_to(device, tensor, pinned(device, bytes_of(tensor)), stream);
}

// Copies on `stream`, into a block of the pool of stream `pool`.
inline sim::Tensor reload(sim::SimDevice& device, const HostCopy& copy, StreamId pool,
                          StreamId stream) {
  const Extent extent = copy.layout.extent();
  const sim::Storage target = device.allocate(Step::kReloadAllocate, extent.bytes(), pool);
  device.reload(Step::kReload, copy.buffer, target, stream);
  return device.restore(target, copy.layout, extent.begin, copy.version);
}

// Orders all later work on `after` behind the work that `before` has now: records an event on
// `before`, and waits for it on `after`.
inline void order(sim::SimDevice& device, Step event, StreamId before, Step wait, StreamId after) {
  device.wait(wait, after, device.record(event, before));
}

// Returns the buffer to a pool that waits for the current copies on `stream`, like PyTorch's pinned
// pool.
inline void give_back(sim::SimDevice& device, sim::HostBuffer& buffer, StreamId stream) {
  const sim::EventHandle event = device.record(Step::kReloaded, stream);
  device.release_host(Step::kHostReturn, std::move(buffer), {&event, 1});
}

}  // namespace ferry::field
