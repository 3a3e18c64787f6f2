// The entry points of CUDA's runtime for memory and copies.
//
// A copy is checked by the kind of memory at its two ends, logged and queued. It reads its source
// when it runs. With pageable memory the schedule may stage it (control.h): the driver then waits
// for the stream and reads at once, and a copy to the host is done when the call returns. A program
// must not rely on that, so the log has no edge for it.
//
// If some values are not computed (known_values.h), only copies of few known bytes are made. Host
// memory is known, except page-locked bytes that a copy left unknown. Instead of any other copy the
// host gets zeros. Large page-locked targets stay untouched, so that their memory need not exist.
#include <cstring>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "vgpu/runtime/runtime.h"

namespace ferry::vgpu {
namespace {

enum class Residence { kDevice, kPinned, kPageable };

// One end of a copy, or the target of a memset.
struct Bytes {
  Residence place = Residence::kPageable;
  Range range;   // addresses in this process
  Range logged;  // addresses in the log
  int device = 0;
};

Bytes bytes_at(Runtime& runtime, const void* address, std::size_t count) {
  Bytes bytes;
  bytes.range = {reinterpret_cast<std::uint64_t>(address), count};
  bytes.logged = runtime.device_memory().range(address, count);
  if (const Allocation* const found = runtime.device_memory().find(address, count)) {
    bytes.place = Residence::kDevice;
    bytes.device = found->device;
  } else if (runtime.pinned_memory().find(address, count) != nullptr) {
    bytes.place = Residence::kPinned;
  }
  return bytes;
}

bool fits(cudaMemcpyKind kind, Residence to, Residence from) {
  switch (kind) {
    case cudaMemcpyHostToHost:
      return to != Residence::kDevice && from != Residence::kDevice;
    case cudaMemcpyHostToDevice:
      return to == Residence::kDevice && from != Residence::kDevice;
    case cudaMemcpyDeviceToHost:
      return to != Residence::kDevice && from == Residence::kDevice;
    case cudaMemcpyDeviceToDevice:
      return to == Residence::kDevice && from == Residence::kDevice;
    case cudaMemcpyDefault:
      return true;
  }
  return false;
}

CopyKind way_of(const Bytes& to, const Bytes& from) {
  if (to.place != Residence::kDevice) return CopyKind::kDeviceToHost;
  return from.place != Residence::kDevice ? CopyKind::kHostToDevice : CopyKind::kDeviceToDevice;
}

CopyCost cost_of(const Bytes& to, const Bytes& from, const Stream& stream) {
  const CopyKind way = way_of(to, from);
  const auto size = static_cast<std::int64_t>(to.range.bytes);
  if (way != CopyKind::kDeviceToDevice) {
    return {.kind = way,
            .bytes = size,
            .host = way == CopyKind::kDeviceToHost ? to.logged.address : from.logged.address,
            .pageable = to.place == Residence::kPageable || from.place == Residence::kPageable};
  }
  if (to.device == from.device) return {.kind = CopyKind::kDeviceToDevice, .bytes = size};
  const int peer = from.device == stream.device ? to.device : from.device;
  return {.kind = CopyKind::kPeer, .bytes = size, .peer = peer};
}

// The bytes whose values the runtime tracks. Pageable memory is the program's own, so it gives no
// range.
std::span<const Range> as_known(const Bytes& bytes) {
  return {&bytes.range, bytes.place == Residence::kPageable ? 0u : 1u};
}

// Returns what runs instead of a copy that is not made: it zeros what the host may read.
std::function<void()> clearing(void* to, const Bytes& target) {
  const std::size_t bytes = target.range.bytes;
  const bool clears = target.place == Residence::kPageable ||
                      (target.place == Residence::kPinned && bytes <= kFewBytes);
  if (!clears) return [] {};
  return [=] { std::memset(to, 0, bytes); };
}

StreamOp op_of_copy(const Stream& stream, const Bytes& to, const Bytes& from) {
  StreamOp op;
  op.kind = StreamOpKind::kCopy;
  op.copy = way_of(to, from);
  op.stream = stream.id;
  op.name = "copy";
  const bool within = op.copy == CopyKind::kDeviceToDevice;
  if (thread().waits_for_copies && !within) op.host_order = HostOrder::kDone;
  op.reads = {&from.logged, 1};
  op.writes = {&to.logged, 1};
  return op;
}

cudaError_t copy(Runtime& runtime, void* to, const void* from, std::size_t bytes,
                 cudaMemcpyKind kind, Stream& stream) {
  if (bytes == 0) return cudaSuccess;
  const Bytes target = bytes_at(runtime, to, bytes);
  const Bytes source = bytes_at(runtime, from, bytes);
  if (!fits(kind, target.place, source.place)) return fail_with(cudaErrorInvalidValue);
  // A node of a graph reads its source at each replay.
  const bool is_staged =
      runtime.schedule().stages_pageable() && runtime.graphs().of(stream) == nullptr;
  const bool reads_now = is_staged && source.place == Residence::kPageable;
  if (reads_now) runtime.host().await(stream);
  const bool moves = runtime.values().computes(as_known(source), as_known(target));
  runtime.values().note_written(as_known(target), moves);
  std::vector<char> staged;
  if (reads_now && moves) {
    const auto* const begin = static_cast<const char*>(from);
    staged.assign(begin, begin + bytes);
  }
  std::function<void()> body = [=, held = std::move(staged)] {
    std::memmove(to, held.empty() ? from : held.data(), bytes);
  };
  if (!moves) body = clearing(to, target);
  const CopyCost cost = cost_of(target, source, stream);
  runtime.issue(stream, op_of_copy(stream, target, source),
                {.body = std::move(body), .cost = cost, .name = "copy"});
  if (is_staged && target.place == Residence::kPageable) runtime.host().await(stream);
  return cudaSuccess;
}

cudaError_t set(Runtime& runtime, void* address, int value, std::size_t bytes, Stream& stream) {
  if (bytes == 0) return cudaSuccess;
  const Bytes target = bytes_at(runtime, address, bytes);
  if (target.place != Residence::kDevice) return fail_with(cudaErrorInvalidValue);
  StreamOp op;
  op.kind = StreamOpKind::kKernel;
  op.stream = stream.id;
  op.name = "set";
  op.writes = {&target.logged, 1};
  const bool computes = runtime.values().computes({}, as_known(target));
  runtime.values().note_written(as_known(target), computes);
  std::function<void()> body = [=] { std::memset(address, value, bytes); };
  if (!computes) body = [] {};
  const KernelCost cost{.bytes = static_cast<std::int64_t>(bytes)};
  runtime.issue(stream, op, {.body = std::move(body), .cost = cost, .name = "set"});
  return cudaSuccess;
}

// Logs that a host block which the runtime gave to the program begins or ends its life.
void tell_block(Runtime& runtime, StreamOpKind kind, const void* address, std::size_t bytes) {
  if (thread().in_pinned_allocator > 0) return;
  StreamOp op;
  op.kind = kind;
  op.range = runtime.device_memory().range(address, bytes);
  op.name = kPinnedName;
  runtime.log().tell(op);
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** address, std::size_t bytes) {
  VGPU_ENTER();
  const int device = thread().device;
  if (bytes > static_cast<std::size_t>(runtime.device_memory().free_bytes(device))) {
    return fail_with(cudaErrorMemoryAllocation);
  }
  *address = runtime.device_memory().allocate(bytes, device);
  return *address != nullptr ? cudaSuccess : fail_with(cudaErrorMemoryAllocation);
}
cudaError_t cudaFree(void* address) {
  VGPU_ENTER();
  if (address == nullptr) return cudaSuccess;
  if (const Allocation* const memory = runtime.device_memory().find(address, 1)) {
    const int device = memory->device;
    runtime.schedule().finish_device(device);
    if (runtime.pools().free(address, runtime.streams().legacy(device))) return cudaSuccess;
  }
  return runtime.device_memory().free(address) ? cudaSuccess : fail_with(cudaErrorInvalidValue);
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  VGPU_ENTER();
  *free = static_cast<std::size_t>(runtime.device_memory().free_bytes(thread().device));
  *total = static_cast<std::size_t>(runtime.settings().device_bytes_max);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** address, std::size_t bytes, unsigned /*flags*/) {
  VGPU_ENTER();
  if (bytes > static_cast<std::size_t>(runtime.pinned_memory().free_bytes())) {
    return fail_with(cudaErrorMemoryAllocation);
  }
  *address = runtime.pinned_memory().allocate(bytes);
  if (*address == nullptr) return fail_with(cudaErrorMemoryAllocation);
  tell_block(runtime, StreamOpKind::kAlloc, *address, bytes);
  return cudaSuccess;
}
cudaError_t cudaMallocHost(void** address, std::size_t bytes) {
  return cudaHostAlloc(address, bytes, cudaHostAllocDefault);
}
cudaError_t cudaFreeHost(void* address) {
  VGPU_ENTER();
  if (address == nullptr) return cudaSuccess;
  if (const Allocation* const memory = runtime.pinned_memory().find_begin(address)) {
    tell_block(runtime, StreamOpKind::kFree, address, memory->bytes);
  }
  return runtime.pinned_memory().free(address) ? cudaSuccess : fail_with(cudaErrorInvalidValue);
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  VGPU_ENTER();
  *attributes = {};
  attributes->hostPointer = const_cast<void*>(address);
  attributes->type = cudaMemoryTypeUnregistered;
  if (const Allocation* const memory = runtime.device_memory().find(address, 1)) {
    attributes->type = cudaMemoryTypeDevice;
    attributes->device = memory->device;
    attributes->devicePointer = const_cast<void*>(address);
    attributes->hostPointer = nullptr;
  } else if (runtime.pinned_memory().find(address, 1) != nullptr) {
    attributes->type = cudaMemoryTypeHost;
    attributes->devicePointer = const_cast<void*>(address);
  }
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  VGPU_ENTER();
  return copy(runtime, to, from, bytes, kind, runtime.streams().use(stream));
}
cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t bytes,
                                cudaStream_t stream) {
  VGPU_ENTER();
  return copy(runtime, to, from, bytes, cudaMemcpyDeviceToDevice, runtime.streams().use(stream));
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  VGPU_ENTER();
  Stream& legacy = runtime.streams().legacy(thread().device);
  const cudaError_t error = copy(runtime, to, from, bytes, kind, legacy);
  if (error != cudaSuccess || kind == cudaMemcpyDeviceToDevice) return error;
  runtime.host().await(legacy);
  runtime.log().tell_sync(legacy.id);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* address, int value, std::size_t bytes, cudaStream_t stream) {
  VGPU_ENTER();
  return set(runtime, address, value, bytes, runtime.streams().use(stream));
}
cudaError_t cudaMemset(void* address, int value, std::size_t bytes) {
  VGPU_ENTER();
  return set(runtime, address, value, bytes, runtime.streams().legacy(thread().device));
}

}  // extern "C"

}  // namespace ferry::vgpu
