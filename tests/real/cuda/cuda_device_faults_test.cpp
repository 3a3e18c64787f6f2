// The offloader on the CUDA device, where CUDA fails: the cause reaches the caller, the next round
// works, and nothing is left.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/real/cuda/rounds.h"

namespace ferry::real {
namespace {

using vgpu::Tempo;
using Plain = Labelled<CudaDevice>;

Rounds<Plain> make_rounds(std::uint64_t trial) {
  return Rounds<Plain>(trial, Tempo::kMixed, Rules(), [](Plain device) { return device; });
}

class CudaFault : public testing::TestWithParam<const char*> {};

TEST_P(CudaFault, IsToldAndTheNextRoundWorks) {
  int told = 0;
  for (std::uint64_t trial = 0; trial < 60; ++trial) {
    auto rounds = make_rounds(trial);
    rounds.forgive();
    if (trial % 2 == 0) rounds.round();  // pools that are warm, or not
    const auto nth = static_cast<std::int64_t>(trial % 16);
    vgpu::fail(GetParam(), nth, cudaErrorIllegalAddress, vgpu::Where::kInAStep);
    for (int i = 0; i < 4; ++i) rounds.round();
    if (!vgpu::failed(GetParam())) continue;  // not so many calls
    for (const std::string& error : rounds.errors()) {
      EXPECT_NE(error.find("an illegal memory access was encountered"), std::string::npos);
    }
    told += rounds.errors().empty() ? 0 : 1;
    const auto verdict = rounds.run(2);
    ASSERT_FALSE(verdict) << "trial " << trial << ": " << verdict->oracle << ": " << verdict->words;
  }
  EXPECT_GT(told, 10) << "the failures were not felt";
}

INSTANTIATE_TEST_SUITE_P(Of, CudaFault,
                         testing::Values("cudaEventRecord", "cudaStreamWaitEvent",
                                         "cudaMemcpyAsync", "cudaEventCreateWithFlags",
                                         "cudaHostAlloc"),
                         [](const auto& each) { return std::string(each.param); });

// Whatever the memory is that runs short.
class CudaShortage : public testing::TestWithParam<bool> {};

TEST_P(CudaShortage, IsToldAndTheNextRoundWorks) {
  int told = 0;
  for (std::uint64_t trial = 0; trial < 60; ++trial) {
    auto rounds = make_rounds(trial);
    rounds.forgive();
    rounds.round();
    const bool pinned = GetParam();
    if (pinned) {
      vgpu::set_pinned_bytes(static_cast<std::int64_t>(trial % 8) * 4096);
    } else {
      // LibTorch takes 2 MiB at a time, for each stream that allocates.
      c10::cuda::CUDACachingAllocator::emptyCache();
      vgpu::set_device_bytes((std::int64_t{2} << 20) * static_cast<std::int64_t>(trial % 3));
    }
    for (int i = 0; i < 3; ++i) rounds.round();
    vgpu::set_pinned_bytes(std::int64_t{256} << 20);
    vgpu::set_device_bytes(std::int64_t{256} << 20);
    const char* const words = pinned ? "out of pinned host memory" : "CUDA out of memory";
    for (const std::string& error : rounds.errors()) {
      EXPECT_NE(error.find(words), std::string::npos) << error;
    }
    told += rounds.errors().empty() ? 0 : 1;
    const auto verdict = rounds.run(2);
    ASSERT_FALSE(verdict) << "trial " << trial << ": " << verdict->oracle << ": " << verdict->words;
  }
  EXPECT_GT(told, 10) << "there was enough";
}

INSTANTIATE_TEST_SUITE_P(Of, CudaShortage, testing::Values(true, false), [](const auto& each) {
  return each.param ? "PinnedMemory" : "DeviceMemory";
});

}  // namespace
}  // namespace ferry::real
