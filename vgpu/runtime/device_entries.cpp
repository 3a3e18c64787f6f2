// The entry points of CUDA's runtime for devices and versions, and the errors of unsupported calls.
//
// All devices are alike, as settings.h describes them. A device attribute without a known value is
// rejected with an error that has its number, because an invented value would mislead a program.
// The current device belongs to the calling thread (thread.h).
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "vgpu/runtime/asking.h"
#include "vgpu/runtime/runtime.h"

namespace ferry::vgpu {
namespace {

constexpr int kVersion = 13000;

// The most shared memory of a block, by compute capability: CUDA C++ programming guide, table
// "Technical specifications per compute capability".
std::size_t shared_bytes_most(int compute_capability) {
  switch (compute_capability) {
    case 70:
    case 72:
      return 96 << 10;
    case 75:
      return 64 << 10;
    case 80:
    case 87:
      return 163 << 10;
    case 86:
    case 89:
    case 120:
    case 121:
      return 99 << 10;
    case 90:
    case 100:
    case 103:
    case 110:
      return 227 << 10;
    default:
      return 48 << 10;
  }
}

cudaDeviceProp properties_of(int device) {
  const Settings& settings = Runtime::get().settings();
  cudaDeviceProp properties = {};
  std::snprintf(properties.name, sizeof properties.name, "%s %d", settings.device_name.c_str(),
                device);
  properties.totalGlobalMem = static_cast<std::size_t>(settings.device_bytes_max);
  properties.sharedMemPerBlock = 48 << 10;
  properties.sharedMemPerBlockOptin = shared_bytes_most(settings.compute_capability);
  properties.regsPerBlock = properties.regsPerMultiprocessor = 64 << 10;
  properties.warpSize = 32;
  properties.maxThreadsPerBlock = 1024;
  const int of_data_centres[] = {80, 90, 100};  // these have 64 warps, others 48
  const bool large =
      std::ranges::find(of_data_centres, settings.compute_capability) != std::end(of_data_centres);
  properties.maxThreadsPerMultiProcessor = large ? 2048 : 1536;
  properties.major = settings.compute_capability / 10;
  properties.minor = settings.compute_capability % 10;
  properties.multiProcessorCount = settings.multiprocessors;
  properties.asyncEngineCount = 2;
  properties.unifiedAddressing = 1;
  properties.concurrentKernels = 1;
  properties.pciBusID = device;
  properties.pciDomainID = 0xfe66;  // libtorch.cpp recognises this runtime by it
  return properties;
}

// Returns nullopt for an attribute that has no known value here.
std::optional<int> known_attribute(cudaDeviceAttr attribute, const cudaDeviceProp& properties) {
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
      return properties.maxThreadsPerBlock;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      return static_cast<int>(properties.sharedMemPerBlock);
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      return static_cast<int>(properties.sharedMemPerBlockOptin);
    case cudaDevAttrMaxRegistersPerBlock:
      return properties.regsPerBlock;
    case cudaDevAttrMaxRegistersPerMultiprocessor:
      return properties.regsPerMultiprocessor;
    case cudaDevAttrWarpSize:
      return properties.warpSize;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      return properties.maxThreadsPerMultiProcessor;
    case cudaDevAttrMultiProcessorCount:
      return properties.multiProcessorCount;
    case cudaDevAttrComputeCapabilityMajor:
      return properties.major;
    case cudaDevAttrComputeCapabilityMinor:
      return properties.minor;
    case cudaDevAttrAsyncEngineCount:
      return properties.asyncEngineCount;
    case cudaDevAttrPciBusId:
      return properties.pciBusID;
    case cudaDevAttrPciDomainId:
      return properties.pciDomainID;
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrStreamPrioritiesSupported:
      return 1;
    case cudaDevAttrManagedMemory:
    case cudaDevAttrConcurrentManagedAccess:
    case cudaDevAttrPageableMemoryAccess:
    case cudaDevAttrHostRegisterSupported:
    case cudaDevAttrCooperativeLaunch:
    case cudaDevAttrIntegrated:
    case cudaDevAttrEccEnabled:
      return 0;
    default:
      return std::nullopt;
  }
}

}  // namespace

// Rejects a call of an unsupported entry point (refused_entries.cpp).
int refuse(const char* name) {
  Runtime& runtime = Runtime::get();
  const std::lock_guard lock(runtime.mutex());
  return runtime.refuse(name, std::string("the virtual GPU does not have ") + name);
}

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  VGPU_ENTER();
  *count = runtime.settings().devices;
  if (*count == 0) note_asking();
  return *count > 0 ? cudaSuccess : fail_with(cudaErrorNoDevice);
}
cudaError_t cudaGetDevice(int* device) {
  VGPU_ENTER();
  *device = thread().device;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  VGPU_ENTER();
  if (!runtime.has_device(device)) return fail_with(cudaErrorInvalidDevice);
  thread().device = device;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  VGPU_ENTER();
  const int device = thread().device;
  runtime.host().synchronize_device(device);
  runtime.pools().release_unused(device);
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  VGPU_ENTER();
  if (!runtime.has_device(device)) return fail_with(cudaErrorInvalidDevice);
  *properties = properties_of(device);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  VGPU_ENTER();
  if (!runtime.has_device(device)) return fail_with(cudaErrorInvalidDevice);
  const std::optional<int> known = known_attribute(attribute, properties_of(device));
  if (!known) {
    const std::string number = std::to_string(static_cast<int>(attribute));
    return runtime.refuse("cudaDeviceGetAttribute",
                          "the virtual GPU does not have attribute " + number);
  }
  *value = *known;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* id, int bytes, int device) {
  VGPU_ENTER();
  if (!runtime.has_device(device)) return fail_with(cudaErrorInvalidDevice);
  std::snprintf(id, static_cast<std::size_t>(bytes), "0000:%02x:00.0", device);
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  VGPU_ENTER();
  *can = 1;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) {
  VGPU_ENTER();
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = kVersion;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = kVersion;
  return cudaSuccess;
}

}  // extern "C"

}  // namespace ferry::vgpu
