// Entry points that CUDA 12's runtime has under other names than CUDA 13's, or with another
// structure. A LibTorch that was built for CUDA 12 calls them. This file is compiled with CUDA 13's
// headers.
#include <cstring>

#include "vgpu/runtime/runtime.h"

namespace ferry::vgpu {
namespace {

// cudaDeviceProp as in CUDA 12.8's driver_types.h. Only the fields that the virtual GPU fills in
// have names.
struct alignas(8) Properties12 {
  char name[256];
  char not_said_1[32];
  std::size_t total_global_mem;
  std::size_t shared_mem_per_block;
  int regs_per_block;
  int warp_size;
  char not_said_2[8];
  int max_threads_per_block;
  char not_said_3[36];
  int major;
  int minor;
  char not_said_4[20];
  int multiprocessor_count;
  char not_said_5[184];
  int concurrent_kernels;
  char not_said_6[4];
  int pci_bus_id;
  char not_said_7[4];
  int pci_domain_id;
  char not_said_8[4];
  int async_engine_count;
  int unified_addressing;
  char not_said_9[16];
  int max_threads_per_multiprocessor;
  char not_said_10[20];
  int regs_per_multiprocessor;
  char not_said_11[44];
  std::size_t shared_mem_per_block_optin;
  char not_said_12[328];
};
static_assert(offsetof(Properties12, total_global_mem) == 288);
static_assert(offsetof(Properties12, max_threads_per_block) == 320);
static_assert(offsetof(Properties12, major) == 360);
static_assert(offsetof(Properties12, multiprocessor_count) == 388);
static_assert(offsetof(Properties12, concurrent_kernels) == 576);
static_assert(offsetof(Properties12, pci_domain_id) == 592);
static_assert(offsetof(Properties12, max_threads_per_multiprocessor) == 624);
static_assert(offsetof(Properties12, regs_per_multiprocessor) == 648);
static_assert(offsetof(Properties12, shared_mem_per_block_optin) == 696);
static_assert(sizeof(Properties12) == 1032);

}  // namespace

extern "C" {

cudaError_t cudaGetDeviceProperties_v2(Properties12* properties, int device) {
  cudaDeviceProp known{};
  if (const cudaError_t error = cudaGetDeviceProperties(&known, device); error != cudaSuccess) {
    return error;
  }
  *properties = {};
  std::memcpy(properties->name, known.name, sizeof known.name);
  properties->total_global_mem = known.totalGlobalMem;
  properties->shared_mem_per_block = known.sharedMemPerBlock;
  properties->regs_per_block = known.regsPerBlock;
  properties->warp_size = known.warpSize;
  properties->max_threads_per_block = known.maxThreadsPerBlock;
  properties->major = known.major;
  properties->minor = known.minor;
  properties->multiprocessor_count = known.multiProcessorCount;
  properties->concurrent_kernels = known.concurrentKernels;
  properties->pci_bus_id = known.pciBusID;
  properties->pci_domain_id = known.pciDomainID;
  properties->async_engine_count = known.asyncEngineCount;
  properties->unified_addressing = known.unifiedAddressing;
  properties->max_threads_per_multiprocessor = known.maxThreadsPerMultiProcessor;
  properties->regs_per_multiprocessor = known.regsPerMultiprocessor;
  properties->shared_mem_per_block_optin = known.sharedMemPerBlockOptin;
  return cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                        unsigned long long* id, cudaGraph_t* graph,
                                        const cudaGraphNode_t** nodes, std::size_t* count) {
  return cudaStreamGetCaptureInfo(stream, status, id, graph, nodes, nullptr, count);
}

cudaError_t cudaGetDriverEntryPoint(const char* name, void** function, unsigned long long flags,
                                    cudaDriverEntryPointQueryResult* result) {
  return cudaGetDriverEntryPointByVersion(name, function, 0, flags, result);
}

}  // extern "C"

}  // namespace ferry::vgpu
