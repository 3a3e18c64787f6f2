// What the schedulers are made of: copies to pinned memory and back, without any edge. Each edge is
// its scheduler's, which forgets some.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "shared/seam/hooks.h"
#include "sim/gpu/device.h"
#include "sim/program/autograd.h"

namespace ferry::field {

// The bytes that a saved tensor covers, and what makes a tensor of them again.
struct HostCopy {
  sim::HostBuffer buffer;
  sim::TensorLayout layout;
  sim::Version version;
};

inline std::int64_t bytes_of(const sim::Tensor& tensor) { return tensor->layout.extent().bytes(); }

inline sim::HostBuffer pinned(sim::SimDevice& device, std::int64_t bytes) {
  return device.allocate_host(Step::kHostAllocate, bytes, HostMemory::kPinned);
}
// The first bytes of a buffer, which still owns them.
inline sim::HostBuffer first_bytes(const sim::HostBuffer& buffer, std::int64_t bytes) {
  sim::HostBuffer part(*buffer.block, buffer.pageable);
  part.block->requested_bytes = bytes;
  return part;
}

// Into `buffer`, which has its size.
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

// On a block of the pool of `pool`, by a copy on `stream`.
inline sim::Tensor reload(sim::SimDevice& device, const HostCopy& copy, StreamId pool,
                          StreamId stream) {
  const Extent extent = copy.layout.extent();
  const sim::Storage target = device.allocate(Step::kReloadAllocate, extent.bytes(), pool);
  device.reload(Step::kReload, copy.buffer, target, stream);
  return device.restore(target, copy.layout, extent.begin, copy.version);
}

// What `after` is given from now on follows what `before` was given so far: `before`'s event,
// `after`'s wait.
inline void order(sim::SimDevice& device, Step event, StreamId before, Step wait, StreamId after) {
  device.wait(wait, after, device.record(event, before));
}

// A pair that is its scheduler's `pack(tensor)`.
template <class S>
class PackHooks final : public Hooks<sim::Tensor> {
 public:
  explicit PackHooks(S& scheduler) : scheduler_(scheduler) {}
  std::unique_ptr<Saved<sim::Tensor>> pack(const sim::Tensor& tensor) override {
    return scheduler_.pack(tensor);
  }

 private:
  S& scheduler_;
};

// To a pool that waits for the copies under way on `stream`, as PyTorch's pinned pool does.
inline void give_back(sim::SimDevice& device, sim::HostBuffer& buffer, StreamId stream) {
  const sim::EventHandle event = device.record(Step::kReloaded, stream);
  device.release_host(Step::kHostReturn, std::move(buffer), {&event, 1});
}

}  // namespace ferry::field
