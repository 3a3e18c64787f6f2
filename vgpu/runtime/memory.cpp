// Entry points: memory and copies.
#include <cstring>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "vgpu/runtime/runtime.h"

namespace ferry::vgpu {
namespace {

enum class Place { kDevice, kPinned, kPageable };

Place place(const void* address, std::size_t bytes) {
  const Runtime& runtime = Runtime::get();
  if (Runtime::find(runtime.device_memory, address, bytes) != nullptr) return Place::kDevice;
  if (Runtime::find(runtime.pinned_memory, address, bytes) != nullptr) return Place::kPinned;
  return Place::kPageable;
}

bool fits(cudaMemcpyKind kind, Place to, Place from) {
  switch (kind) {
    case cudaMemcpyHostToHost:
      return to != Place::kDevice && from != Place::kDevice;
    case cudaMemcpyHostToDevice:
      return to == Place::kDevice && from != Place::kDevice;
    case cudaMemcpyDeviceToHost:
      return to != Place::kDevice && from == Place::kDevice;
    case cudaMemcpyDeviceToDevice:
      return to == Place::kDevice && from == Place::kDevice;
    case cudaMemcpyDefault:
      return true;
  }
  return false;
}

void tell(StreamOpKind kind, CopyKind copy, const Stream& stream, const Range* read,
          const Range* write) {
  StreamOp op;
  op.kind = kind;
  op.copy = copy;
  op.stream = stream.id;
  op.name = kind == StreamOpKind::kCopy ? "copy" : "set";
  if (read != nullptr) op.reads = {read, 1};
  op.writes = {write, 1};
  Runtime::get().tell(op);
}

void tell_sync(const Stream& stream) {
  StreamOp op;
  op.kind = StreamOpKind::kStreamSync;
  op.stream = stream.id;
  Runtime::get().tell(op);
}

// Of a copy that is not of the host's: within the stream's device, or with another one.
CopyCost device_copy(const void* to, const void* from, std::size_t bytes, const Stream& stream) {
  const Runtime& runtime = Runtime::get();
  const int target = Runtime::find(runtime.device_memory, to, bytes)->device;
  const int source = Runtime::find(runtime.device_memory, from, bytes)->device;
  const auto size = static_cast<std::int64_t>(bytes);
  if (source == target) return {.kind = CopyKind::kDeviceToDevice, .bytes = size};
  const int peer = source == stream.device ? target : source;
  return {.kind = CopyKind::kPeer, .bytes = size, .peer = peer};
}

CopyCost host_copy(CopyKind way, Range host, bool pageable) {
  return {.kind = way,
          .bytes = static_cast<std::int64_t>(host.bytes),
          .host = host.address,
          .pageable = pageable};
}

// Where not all is computed: a copy of few known bytes is made. Host memory is known, but for what
// was copied there and is not.
bool is_moved(void* to, const void* from, std::size_t bytes, Place target, Place source) {
  const Range read{reinterpret_cast<std::uint64_t>(from), bytes};
  const Range write{reinterpret_cast<std::uint64_t>(to), bytes};
  return Runtime::get().computes({&read, source == Place::kPageable ? 0u : 1u},
                                 {&write, target == Place::kPageable ? 0u : 1u});
}

// Of others the host gets zeros, but in much of page-locked memory, which is not touched, so that
// it need not exist.
std::function<void()> clearing(void* to, std::size_t bytes, Place target) {
  const bool clears =
      target == Place::kPageable || (target == Place::kPinned && bytes <= kFewBytes);
  if (!clears) return [] {};
  return [=] { std::memset(to, 0, bytes); };
}

cudaError_t copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                 Stream& stream) {
  Runtime& runtime = Runtime::get();
  if (bytes == 0) return cudaSuccess;
  const Place target = place(to, bytes);
  const Place source = place(from, bytes);
  if (!fits(kind, target, source)) return runtime.fail_with(cudaErrorInvalidValue);
  const Range read = runtime.range(from, bytes);
  const Range write = runtime.range(to, bytes);
  const CopyKind way = target != Place::kDevice   ? CopyKind::kDeviceToHost
                       : source != Place::kDevice ? CopyKind::kHostToDevice
                                                  : CopyKind::kDeviceToDevice;
  tell(StreamOpKind::kCopy, way, stream, &read, &write);
  const bool staged = runtime.stages_pageable();
  // The driver waits for the stream, then reads.
  if (staged && source == Place::kPageable) runtime.await(stream);
  const bool moved = is_moved(to, from, bytes, target, source);
  std::vector<char> bytes_staged;
  if (staged && source == Place::kPageable && moved) {
    const auto* const begin = static_cast<const char*>(from);
    bytes_staged.assign(begin, begin + bytes);
  }
  std::function<void()> body = [=, held = std::move(bytes_staged)] {
    std::memmove(to, held.empty() ? from : held.data(), bytes);
  };
  if (!moved) body = clearing(to, bytes, target);
  const CopyCost cost = way == CopyKind::kDeviceToDevice
                            ? device_copy(to, from, bytes, stream)
                            : host_copy(way, way == CopyKind::kDeviceToHost ? write : read,
                                        target == Place::kPageable || source == Place::kPageable);
  runtime.enqueue(stream, {.body = std::move(body), .cost = cost, .name = "copy"});
  // Done by now, and nobody may rely on it: no edge in the log.
  if (staged && target == Place::kPageable) runtime.await(stream);
  return cudaSuccess;
}

cudaError_t set(void* address, int value, std::size_t bytes, Stream& stream) {
  Runtime& runtime = Runtime::get();
  if (bytes == 0) return cudaSuccess;
  if (place(address, bytes) != Place::kDevice) return runtime.fail_with(cudaErrorInvalidValue);
  const Range write = runtime.range(address, bytes);
  tell(StreamOpKind::kKernel, CopyKind::kDeviceToDevice, stream, nullptr, &write);
  const KernelCost cost{.bytes = static_cast<std::int64_t>(bytes)};
  std::function<void()> body = [=] { std::memset(address, value, bytes); };
  const Range written{reinterpret_cast<std::uint64_t>(address), bytes};
  if (!runtime.computes({}, {&written, 1})) body = [] {};
  runtime.enqueue(stream, {.body = std::move(body), .cost = cost, .name = "set"});
  return cudaSuccess;
}

// A host block of the runtime's own begins or ends its life.
void tell_block(StreamOpKind kind, Range range) {
  if (thread().in_pinned_allocator > 0) return;
  StreamOp op;
  op.kind = kind;
  op.range = range;
  op.name = kPinnedName;
  Runtime::get().tell(op);
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** address, std::size_t bytes) {
  VGPU_ENTER();
  const int device = thread().device;
  if (bytes > static_cast<std::size_t>(runtime.free_device_bytes(device))) {
    return runtime.fail_with(cudaErrorMemoryAllocation);
  }
  *address = runtime.allocate(runtime.device_memory, bytes, device);
  return *address != nullptr ? cudaSuccess : runtime.fail_with(cudaErrorMemoryAllocation);
}
cudaError_t cudaFree(void* address) {
  VGPU_ENTER();
  if (address == nullptr) return cudaSuccess;
  if (const Memory* memory = Runtime::find(runtime.device_memory, address, 1)) {
    runtime.finish_device(memory->device);
    Stream& legacy = runtime.stream(nullptr, memory->device);
    if (runtime.free_of_pool(address, legacy)) return cudaSuccess;
  }
  return runtime.free(runtime.device_memory, address) ? cudaSuccess
                                                      : runtime.fail_with(cudaErrorInvalidValue);
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  VGPU_ENTER();
  *free = static_cast<std::size_t>(runtime.free_device_bytes(thread().device));
  *total = static_cast<std::size_t>(runtime.device_bytes_max);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** address, std::size_t bytes, unsigned /*flags*/) {
  VGPU_ENTER();
  const std::int64_t free = runtime.pinned_bytes_max - runtime.pinned_bytes();
  if (free < 0 || bytes > static_cast<std::size_t>(free)) {
    return runtime.fail_with(cudaErrorMemoryAllocation);
  }
  *address = runtime.allocate(runtime.pinned_memory, bytes, thread().device);
  if (*address == nullptr) return runtime.fail_with(cudaErrorMemoryAllocation);
  tell_block(StreamOpKind::kAlloc, runtime.range(*address, bytes));
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* address) {
  VGPU_ENTER();
  if (address == nullptr) return cudaSuccess;
  const auto found = runtime.pinned_memory.find(reinterpret_cast<std::uintptr_t>(address));
  if (found != runtime.pinned_memory.end()) {
    tell_block(StreamOpKind::kFree, runtime.range(address, found->second.bytes));
  }
  return runtime.free(runtime.pinned_memory, address) ? cudaSuccess
                                                      : runtime.fail_with(cudaErrorInvalidValue);
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  VGPU_ENTER();
  *attributes = {};
  attributes->hostPointer = const_cast<void*>(address);
  attributes->type = cudaMemoryTypeUnregistered;
  if (const Memory* memory = Runtime::find(runtime.device_memory, address, 1)) {
    attributes->type = cudaMemoryTypeDevice;
    attributes->device = memory->device;
    attributes->devicePointer = const_cast<void*>(address);
    attributes->hostPointer = nullptr;
  } else if (Runtime::find(runtime.pinned_memory, address, 1) != nullptr) {
    attributes->type = cudaMemoryTypeHost;
    attributes->devicePointer = const_cast<void*>(address);
  }
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  VGPU_ENTER();
  return copy(to, from, bytes, kind, runtime.stream(stream));
}
cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t bytes,
                                cudaStream_t stream) {
  VGPU_ENTER();
  return copy(to, from, bytes, cudaMemcpyDeviceToDevice, runtime.stream(stream));
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  VGPU_ENTER();
  Stream& legacy = runtime.stream(nullptr);
  const cudaError_t error = copy(to, from, bytes, kind, legacy);
  if (error != cudaSuccess || kind == cudaMemcpyDeviceToDevice) return error;
  runtime.await(legacy);
  tell_sync(legacy);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* address, int value, std::size_t bytes, cudaStream_t stream) {
  VGPU_ENTER();
  return set(address, value, bytes, runtime.stream(stream));
}
cudaError_t cudaMemset(void* address, int value, std::size_t bytes) {
  VGPU_ENTER();
  return set(address, value, bytes, runtime.stream(nullptr));
}

}  // extern "C"

}  // namespace ferry::vgpu
