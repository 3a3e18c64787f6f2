// Entry points: the stream-ordered allocator, on the default pool of each device. There are no
// other pools.
#include <cstring>
#include <optional>

#include "vgpu/runtime/memory_pool.h"
#include "vgpu/runtime/runtime.h"

namespace ferry::vgpu {
namespace {

cudaMemPool_t handle(MemoryPool& pool) { return reinterpret_cast<cudaMemPool_t>(&pool); }

// Null: it is none.
MemoryPool* find(cudaMemPool_t pool) {
  for (MemoryPool& each : Runtime::get().pools) {
    if (handle(each) == pool) return &each;
  }
  return nullptr;
}

void tell(StreamOpKind kind, const Stream& stream, void* address, std::size_t bytes) {
  Runtime& runtime = Runtime::get();
  StreamOp op;
  op.kind = kind;
  op.stream = stream.id;
  op.range = runtime.range(address, bytes);
  op.pool = PoolKind::kAsync;
  runtime.tell(op);
  const auto change = static_cast<std::int64_t>(bytes);
  if (runtime.clock == nullptr) return;
  runtime.clock->allocated(stream.device, kind == StreamOpKind::kAlloc ? change : -change);
}

bool add_segment(int device, std::size_t bytes) {
  Runtime& runtime = Runtime::get();
  const std::size_t size = MemoryPool::segment_bytes(bytes);
  if (size > static_cast<std::size_t>(runtime.free_device_bytes(device))) return false;
  void* const segment = runtime.allocate(runtime.device_memory, size, device);
  if (segment == nullptr) return false;
  runtime.pool(device).add_segment(reinterpret_cast<std::uintptr_t>(segment), size);
  return true;
}

// From what is cheapest to what costs most: what the stream has freed, new memory, what is
// free as a whole given back for that, what other streams have freed.
std::optional<std::uintptr_t> allocate(std::size_t bytes, Stream& stream) {
  Runtime& runtime = Runtime::get();
  MemoryPool& pool = runtime.pool(stream.device);
  if (const auto own = pool.allocate(bytes, stream.id)) return own;
  if (add_segment(stream.device, bytes)) return pool.allocate(bytes, stream.id);
  runtime.release_unused(stream.device, 0);
  if (add_segment(stream.device, bytes)) return pool.allocate(bytes, stream.id);
  for (const StreamId owner : pool.give_all_to(stream.id)) runtime.order(owner, stream);
  return pool.allocate(bytes, stream.id);
}

// One attribute's value: a number of 64 bits that the pool has, or one of the three switches.
std::uint64_t* number(MemoryPool& pool, cudaMemPoolAttr attribute) {
  switch (attribute) {
    case cudaMemPoolAttrReleaseThreshold:
      return &pool.release_threshold;
    case cudaMemPoolAttrReservedMemCurrent:
      return &pool.reserved.now;
    case cudaMemPoolAttrReservedMemHigh:
      return &pool.reserved.most;
    case cudaMemPoolAttrUsedMemCurrent:
      return &pool.used.now;
    case cudaMemPoolAttrUsedMemHigh:
      return &pool.used.most;
    default:
      return nullptr;
  }
}

bool is_switch(cudaMemPoolAttr attribute) {
  return attribute == cudaMemPoolReuseFollowEventDependencies ||
         attribute == cudaMemPoolReuseAllowOpportunistic ||
         attribute == cudaMemPoolReuseAllowInternalDependencies;
}

}  // namespace

bool Runtime::free_of_pool(void* address, const Stream& stream) {
  for (MemoryPool& pool : pools) {
    const auto bytes = pool.free(reinterpret_cast<std::uintptr_t>(address), stream.id);
    if (!bytes) continue;
    vgpu::tell(StreamOpKind::kFree, stream, address, *bytes);
    return true;
  }
  return false;
}

extern "C" {

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  VGPU_ENTER();
  if (device < 0 || device >= runtime.devices) return runtime.fail_with(cudaErrorInvalidDevice);
  *pool = handle(runtime.pool(device));
  return cudaSuccess;
}
cudaError_t cudaMallocAsync(void** address, std::size_t bytes, cudaStream_t stream) {
  VGPU_ENTER();
  Stream& on = runtime.stream(stream);
  const auto block = allocate(bytes, on);
  if (!block) return runtime.fail_with(cudaErrorMemoryAllocation);
  *address = reinterpret_cast<void*>(*block);
  tell(StreamOpKind::kAlloc, on, *address, MemoryPool::rounded(bytes));
  return cudaSuccess;
}
cudaError_t cudaFreeAsync(void* address, cudaStream_t stream) {
  VGPU_ENTER();
  if (address == nullptr) return cudaSuccess;
  if (runtime.free_of_pool(address, runtime.stream(stream))) return cudaSuccess;
  return runtime.fail_with(cudaErrorInvalidValue);
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, std::size_t kept) {
  VGPU_ENTER();
  MemoryPool* const trimmed = find(pool);
  if (trimmed == nullptr) return runtime.fail_with(cudaErrorInvalidValue);
  runtime.release_unused(static_cast<int>(trimmed - runtime.pools.data()), kept);
  return cudaSuccess;
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  VGPU_ENTER();
  MemoryPool* const asked = find(pool);
  if (asked == nullptr) return runtime.fail_with(cudaErrorInvalidValue);
  if (const std::uint64_t* const known = number(*asked, attribute)) {
    std::memcpy(value, known, sizeof *known);
    return cudaSuccess;
  }
  if (!is_switch(attribute)) return runtime.fail_with(cudaErrorInvalidValue);
  const int on = attribute == cudaMemPoolReuseAllowInternalDependencies ? 1 : 0;
  std::memcpy(value, &on, sizeof on);
  return cudaSuccess;
}
// The switches may be set, and change nothing: what they allow CUDA need not do.
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  VGPU_ENTER();
  MemoryPool* const changed = find(pool);
  if (changed == nullptr) return runtime.fail_with(cudaErrorInvalidValue);
  if (is_switch(attribute)) return cudaSuccess;
  std::uint64_t wanted = 0;
  std::memcpy(&wanted, value, sizeof wanted);
  if (attribute == cudaMemPoolAttrReleaseThreshold) {
    changed->release_threshold = wanted;
    return cudaSuccess;
  }
  const bool is_peak =
      attribute == cudaMemPoolAttrReservedMemHigh || attribute == cudaMemPoolAttrUsedMemHigh;
  if (!is_peak || wanted != 0) return runtime.fail_with(cudaErrorInvalidValue);
  MemoryPool::Use& use =
      attribute == cudaMemPoolAttrUsedMemHigh ? changed->used : changed->reserved;
  use.most = use.now;
  return cudaSuccess;
}
// Each device reaches the memory of all.
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc*, std::size_t) {
  VGPU_ENTER();
  return find(pool) != nullptr ? cudaSuccess : runtime.fail_with(cudaErrorInvalidValue);
}

}  // extern "C"

}  // namespace ferry::vgpu
