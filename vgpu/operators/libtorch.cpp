#include "vgpu/operators/libtorch.h"

#include <ATen/Context.h>
#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "vgpu/operators/pinned_blocks.h"
#include "vgpu/runtime/control.h"

namespace ferry::vgpu {
namespace {

constexpr int kNoPciDomain = 0xfe66;  // the same as in vgpu/runtime/device_entries.cpp

// A private pool has one of the two numbers: that of a capture, or that of a handle or a MemPool.
std::uint32_t private_pool(const c10::cuda::MempoolId_t& pool) {
  if (pool.first != 0) return static_cast<std::uint32_t>(2 * pool.first);
  return pool.second != 0 ? static_cast<std::uint32_t>(2 * pool.second + 1) : 0;
}

void note(const c10::cuda::CUDACachingAllocator::TraceEntry& entry) {
  using Action = c10::cuda::CUDACachingAllocator::TraceEntry::Action;
  const auto say = [&](BlockIs is) {
    vgpu::note_block(is, entry.device_, reinterpret_cast<const void*>(entry.addr_), entry.size_,
                     static_cast<cudaStream_t>(entry.stream_), private_pool(entry.mempool_));
  };
  switch (entry.action_) {
    case Action::ALLOC:
      return say(BlockIs::kGivenOut);
    case Action::FREE_REQUESTED:
      return say(BlockIs::kReturned);
    case Action::FREE_COMPLETED:
      return say(BlockIs::kFree);
    default:
      return;
  }
}

}  // namespace

void start_libtorch() {
  cudaDeviceProp properties{};
  if (cudaGetDeviceProperties(&properties, 0) != cudaSuccess ||
      properties.pciDomainID != kNoPciDomain) {
    std::fprintf(stderr, "expected Ferry's virtual CUDA runtime, but another one was loaded\n");
    std::exit(1);
  }
  at::globalContext().lazyInitDevice(c10::DeviceType::CUDA);
  tell_pinned_blocks();
  // Autograd orders streams with c10::Event, whose code is in the same library as the allocator's.
  learn_recorder(
      [] { c10::Event(c10::DeviceType::CUDA).record(c10::cuda::getDefaultCUDAStream().unwrap()); });
  // This allocator is part of the runtime, which reports its blocks itself.
  if (c10::cuda::CUDACachingAllocator::name() == "cudaMallocAsync") return;
  c10::cuda::CUDACachingAllocator::attachAllocatorTraceTracker(note);
}

std::int64_t allocated_bytes_peak(int device) {
  using c10::CachingAllocator::StatType;
  const auto stats =
      c10::cuda::CUDACachingAllocator::getDeviceStats(static_cast<c10::DeviceIndex>(device));
  return stats.allocated_bytes[static_cast<std::size_t>(StatType::AGGREGATE)].peak;
}

}  // namespace ferry::vgpu
