// Entry points of the stream-ordered allocator, on the default pool of each device. There are no
// other pools.
//
// pools.h has the pools, what they take from the devices and what they log. This file has their
// attributes: numbers of 64 bits, and three switches for the reuse of memory. Of these switches,
// only ReuseAllowInternalDependencies is on.
#include <cstring>
#include <optional>

#include "vgpu/runtime/memory_pool.h"
#include "vgpu/runtime/runtime.h"

namespace ferry::vgpu {
namespace {

// Returns nullopt for a switch, and for an attribute that does not exist.
std::optional<std::uint64_t> number(const MemoryPool& pool, cudaMemPoolAttr attribute) {
  switch (attribute) {
    case cudaMemPoolAttrReleaseThreshold:
      return pool.release_threshold();
    case cudaMemPoolAttrReservedMemCurrent:
      return pool.reserved().now;
    case cudaMemPoolAttrReservedMemHigh:
      return pool.reserved().most;
    case cudaMemPoolAttrUsedMemCurrent:
      return pool.used().now;
    case cudaMemPoolAttrUsedMemHigh:
      return pool.used().most;
    default:
      return std::nullopt;
  }
}

// A peak can only be set to 0. It then begins anew.
cudaError_t set_number(MemoryPool& pool, cudaMemPoolAttr attribute, std::uint64_t wanted) {
  switch (attribute) {
    case cudaMemPoolAttrReleaseThreshold:
      pool.set_release_threshold(wanted);
      return cudaSuccess;
    case cudaMemPoolAttrReservedMemHigh:
      if (wanted != 0) return fail_with(cudaErrorInvalidValue);
      pool.forget_most_reserved();
      return cudaSuccess;
    case cudaMemPoolAttrUsedMemHigh:
      if (wanted != 0) return fail_with(cudaErrorInvalidValue);
      pool.forget_most_used();
      return cudaSuccess;
    default:
      return fail_with(cudaErrorInvalidValue);
  }
}

bool is_switch(cudaMemPoolAttr attribute) {
  return attribute == cudaMemPoolReuseFollowEventDependencies ||
         attribute == cudaMemPoolReuseAllowOpportunistic ||
         attribute == cudaMemPoolReuseAllowInternalDependencies;
}

}  // namespace

extern "C" {

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  VGPU_ENTER();
  if (!runtime.has_device(device)) return fail_with(cudaErrorInvalidDevice);
  *pool = runtime.pools().handle(device);
  return cudaSuccess;
}
cudaError_t cudaMallocAsync(void** address, std::size_t bytes, cudaStream_t stream) {
  VGPU_ENTER();
  void* const block = runtime.pools().allocate(bytes, runtime.streams().use(stream));
  if (block == nullptr) return fail_with(cudaErrorMemoryAllocation);
  *address = block;
  return cudaSuccess;
}
cudaError_t cudaFreeAsync(void* address, cudaStream_t stream) {
  VGPU_ENTER();
  if (address == nullptr) return cudaSuccess;
  const bool freed = runtime.pools().free(address, runtime.streams().use(stream));
  return freed ? cudaSuccess : fail_with(cudaErrorInvalidValue);
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, std::size_t kept) {
  VGPU_ENTER();
  const std::optional<int> device = runtime.pools().device_of(pool);
  if (!device) return fail_with(cudaErrorInvalidValue);
  runtime.pools().release_unused(*device, kept);
  return cudaSuccess;
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  VGPU_ENTER();
  const std::optional<int> device = runtime.pools().device_of(pool);
  if (!device) return fail_with(cudaErrorInvalidValue);
  if (const auto known = number(runtime.pools().pool(*device), attribute)) {
    std::memcpy(value, &*known, sizeof *known);
    return cudaSuccess;
  }
  if (!is_switch(attribute)) return fail_with(cudaErrorInvalidValue);
  const int on = attribute == cudaMemPoolReuseAllowInternalDependencies ? 1 : 0;
  std::memcpy(value, &on, sizeof on);
  return cudaSuccess;
}
// The switches may be set, but this has no effect: CUDA need not do what they allow.
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  VGPU_ENTER();
  const std::optional<int> device = runtime.pools().device_of(pool);
  if (!device) return fail_with(cudaErrorInvalidValue);
  if (is_switch(attribute)) return cudaSuccess;
  std::uint64_t wanted = 0;
  std::memcpy(&wanted, value, sizeof wanted);
  return set_number(runtime.pools().pool(*device), attribute, wanted);
}
// Every device can access the memory of every other one.
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc*, std::size_t) {
  VGPU_ENTER();
  return runtime.pools().device_of(pool) ? cudaSuccess : fail_with(cudaErrorInvalidValue);
}

}  // extern "C"

}  // namespace ferry::vgpu
