// Entry points of the CUDA driver for virtual memory, which LibTorch uses for expandable segments.
// LibTorch looks them up through the runtime, by their names. Under any other name it gets a
// function that returns CUDA_ERROR_NOT_SUPPORTED.
#include <cuda.h>

#include <string_view>

#include "vgpu/runtime/runtime.h"

namespace ferry::vgpu {
namespace {

CUresult driver_error(cudaError_t error) {  // common errors have the same numbers
  return static_cast<CUresult>(error);
}

#define VGPU_ENTER_DRIVER()                                                      \
  auto& runtime = ::ferry::vgpu::Runtime::get();                                 \
  const std::lock_guard lock(runtime.mutex());                                   \
  if (const cudaError_t error = runtime.enter(__func__); error != cudaSuccess) { \
    return driver_error(error);                                                  \
  }

void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }
bool is_whole(std::size_t bytes) { return bytes > 0 && bytes % VirtualMemory::kGranularity == 0; }

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute, CUdevice) {
  *value = 0;  // no RDMA, no fabric
  return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationGranularity(std::size_t* granularity, const CUmemAllocationProp*,
                                       CUmemAllocationGranularity_flags) {
  *granularity = VirtualMemory::kGranularity;
  return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr* address, std::size_t bytes, std::size_t, CUdeviceptr,
                             unsigned long long) {
  VGPU_ENTER_DRIVER();
  if (!is_whole(bytes)) return CUDA_ERROR_INVALID_VALUE;
  *address = reinterpret_cast<CUdeviceptr>(runtime.virtual_memory().reserve(bytes));
  return *address != 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemAddressFree(CUdeviceptr address, std::size_t bytes) {
  VGPU_ENTER_DRIVER();
  const bool kept = runtime.settings().keeps_addresses;
  const bool given = runtime.virtual_memory().give_back(pointer(address), bytes, kept);
  return given ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* piece, std::size_t bytes,
                     const CUmemAllocationProp* properties, unsigned long long) {
  VGPU_ENTER_DRIVER();
  const int device = properties->location.id;
  if (!is_whole(bytes) || properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
      !runtime.has_device(device)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (static_cast<std::int64_t>(bytes) > runtime.device_memory().free_bytes(device)) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *piece = runtime.virtual_memory().create(bytes, device);
  runtime.device_memory().note_peaks();
  return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle piece) {
  VGPU_ENTER_DRIVER();
  return runtime.virtual_memory().release(piece) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemMap(CUdeviceptr address, std::size_t bytes, std::size_t offset,
                  CUmemGenericAllocationHandle piece, unsigned long long) {
  VGPU_ENTER_DRIVER();
  if (offset != 0) return CUDA_ERROR_INVALID_VALUE;
  const int device = runtime.virtual_memory().map(pointer(address), bytes, piece);
  if (device < 0) return CUDA_ERROR_INVALID_VALUE;
  runtime.device_memory().add_mapped(pointer(address), bytes, device);
  return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr address, std::size_t bytes, const CUmemAccessDesc*,
                        std::size_t) {
  VGPU_ENTER_DRIVER();
  const bool mapped = runtime.virtual_memory().is_mapped(pointer(address), bytes);
  return mapped ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemUnmap(CUdeviceptr address, std::size_t bytes) {
  VGPU_ENTER_DRIVER();
  if (!runtime.virtual_memory().is_mapped(pointer(address), bytes)) return CUDA_ERROR_INVALID_VALUE;
  const int device = runtime.device_memory().find(pointer(address), 1)->device;
  runtime.schedule().finish_device(device);
  runtime.log().forget({address, bytes});
  runtime.values().remove({address, bytes});
  runtime.virtual_memory().unmap(pointer(address), bytes);
  runtime.device_memory().remove_mapped(pointer(address), bytes);
  return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char** text) {
  *text = cudaGetErrorString(static_cast<cudaError_t>(error));
  return CUDA_SUCCESS;
}

int unsupported() { return CUDA_ERROR_NOT_SUPPORTED; }

struct DriverEntry {
  std::string_view name;
  void* function;
};
#define VGPU_ENTRY(name) \
  DriverEntry { #name, reinterpret_cast < void*>(name) }

}  // namespace

extern "C" {

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  static const DriverEntry kEntries[] = {
      VGPU_ENTRY(cuDeviceGet),
      VGPU_ENTRY(cuDeviceGetAttribute),
      VGPU_ENTRY(cuMemGetAllocationGranularity),
      VGPU_ENTRY(cuMemAddressReserve),
      VGPU_ENTRY(cuMemAddressFree),
      VGPU_ENTRY(cuMemCreate),
      VGPU_ENTRY(cuMemRelease),
      VGPU_ENTRY(cuMemMap),
      VGPU_ENTRY(cuMemSetAccess),
      VGPU_ENTRY(cuMemUnmap),
      VGPU_ENTRY(cuGetErrorString),
  };
  if (result != nullptr) *result = cudaDriverEntryPointSuccess;
  *function = reinterpret_cast<void*>(unsupported);
  for (const DriverEntry& entry : kEntries) {
    if (entry.name == name) *function = entry.function;
  }
  return cudaSuccess;
}

}  // extern "C"

}  // namespace ferry::vgpu
