// Entry points: devices, errors, versions, and all that the fake does not have.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "tests/real/fake_cuda/entry.h"

using namespace ferry;             // NOLINT: entry points lie in no namespace
using namespace ferry::fake_cuda;  // NOLINT

namespace {

constexpr int kVersion = 13000;
constexpr int kUnsupported = 801;  // CUDA_ERROR_NOT_SUPPORTED, of the driver

// Stands for each entry point of the driver that LibTorch looks up: none is called in tests.
int unsupported() { return kUnsupported; }

}  // namespace

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  FAKE_CUDA_ENTER();
  *count = runtime.devices;
  return *count > 0 ? cudaSuccess : runtime.fail_with(cudaErrorNoDevice);
}
cudaError_t cudaGetDevice(int* device) {
  FAKE_CUDA_ENTER();
  *device = thread().device;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  FAKE_CUDA_ENTER();
  if (device < 0 || device >= runtime.devices) return runtime.fail_with(cudaErrorInvalidDevice);
  thread().device = device;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  FAKE_CUDA_ENTER();
  const int device = thread().device;
  runtime.synchronize_device(device);
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  FAKE_CUDA_ENTER();
  if (device < 0 || device >= runtime.devices) return runtime.fail_with(cudaErrorInvalidDevice);
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "fake GPU %d", device);
  properties->totalGlobalMem = static_cast<std::size_t>(runtime.device_bytes_max);
  properties->sharedMemPerBlock = 48 << 10;
  properties->regsPerBlock = 64 << 10;
  properties->warpSize = 32;
  properties->maxThreadsPerBlock = 1024;
  properties->maxThreadsPerMultiProcessor = 2048;
  properties->major = 8;
  properties->minor = 0;
  properties->multiProcessorCount = 4;
  properties->asyncEngineCount = 2;
  properties->unifiedAddressing = 1;
  properties->concurrentKernels = 1;
  properties->pciBusID = device;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  FAKE_CUDA_ENTER();
  *value = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* id, int bytes, int device) {
  FAKE_CUDA_ENTER();
  std::snprintf(id, static_cast<std::size_t>(bytes), "0000:%02x:00.0", device);
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  FAKE_CUDA_ENTER();
  *can = 1;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) {
  FAKE_CUDA_ENTER();
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

cudaError_t cudaGetLastError() { return std::exchange(thread().last_error, cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return thread().last_error; }
const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorCudartUnloading:
      return "cudaErrorCudartUnloading";
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorInvalidResourceHandle:
      return "cudaErrorInvalidResourceHandle";
    case cudaErrorNotReady:
      return "cudaErrorNotReady";
    case cudaErrorIllegalAddress:
      return "cudaErrorIllegalAddress";
    case cudaErrorLaunchFailure:
      return "cudaErrorLaunchFailure";
    case cudaErrorNotSupported:
      return "cudaErrorNotSupported";
    case cudaErrorNoDevice:
      return "cudaErrorNoDevice";
    case cudaErrorAssert:
      return "cudaErrorAssert";
    default:
      return "cudaErrorUnknown";
  }
}
const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorIllegalAddress:
      return "an illegal memory access was encountered";
    case cudaErrorNotSupported:
      if (!thread().refused_kernel.empty()) return thread().refused_kernel.c_str();
      return "operation not supported";
    default:
      return cudaGetErrorName(error);
  }
}

cudaError_t cudaGetDriverEntryPointByVersion(const char*, void** function, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  if (result != nullptr) *result = cudaDriverEntryPointSuccess;
  *function = reinterpret_cast<void*>(unsupported);
  return cudaSuccess;
}

}  // extern "C"
