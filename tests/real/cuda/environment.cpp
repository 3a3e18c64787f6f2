// The process runs LibTorch on the fake runtime: before the first test this is made certain of.
//
// LibTorch asks the driver, past the runtime, whether a device's context exists. There is no
// driver, so the answer is given here: it does.
#include <ATen/Context.h>
#include <c10/core/Device.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <string_view>

#include "tests/real/fake_cuda/fake_cuda.h"

namespace c10::cuda::_internal {
void setHasPrimaryContext(bool (*answer)(c10::DeviceIndex));  // of libc10_cuda, without a header
}  // namespace c10::cuda::_internal

namespace ferry::real {
namespace {

// What the allocator gives out and takes back, for the log.
void note(const c10::cuda::CUDACachingAllocator::TraceEntry& entry) {
  using Action = c10::cuda::CUDACachingAllocator::TraceEntry::Action;
  if (entry.action_ != Action::ALLOC && entry.action_ != Action::FREE_COMPLETED) return;
  fake_cuda::note_block(entry.action_ == Action::ALLOC, entry.device_,
                        reinterpret_cast<const void*>(entry.addr_), entry.size_,
                        static_cast<cudaStream_t>(entry.stream_));
}

class OnTheFake final : public testing::Environment {
 public:
  void SetUp() override {
    cudaDeviceProp properties{};
    if (cudaGetDeviceProperties(&properties, 0) != cudaSuccess ||
        !std::string_view(properties.name).starts_with("fake CUDA")) {
      std::cerr << "these tests run on the fake CUDA runtime, and another one was loaded\n";
      std::exit(1);
    }
    fake_cuda::reset();
    at::globalContext().lazyInitDevice(c10::DeviceType::CUDA);
    c10::cuda::_internal::setHasPrimaryContext([](c10::DeviceIndex) { return true; });
    c10::cuda::CUDACachingAllocator::attachAllocatorTraceTracker(note);
  }
};

const auto* const kOnTheFake = testing::AddGlobalTestEnvironment(new OnTheFake);

}  // namespace
}  // namespace ferry::real
