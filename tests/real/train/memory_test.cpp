// Live bytes are exact, and the resident size is the step's own.
#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "real/train/memory.h"
#include "tests/real/sanitized.h"

namespace ferry::real::train {
namespace {

constexpr std::int64_t kMebibyte = std::int64_t{1} << 20;

TEST(MemoryTest, LiveBytesAreExact) {
  const std::int64_t before = live_bytes();
  {
    const torch::Tensor x = torch::zeros({1000}, torch::kByte);
    EXPECT_EQ(live_bytes(), before + 1000);
    const torch::Tensor y = x.clone();
    EXPECT_EQ(live_bytes(), before + 2000);
  }
  EXPECT_EQ(live_bytes(), before);
  const torch::Tensor nothing = torch::empty({0});
  EXPECT_EQ(live_bytes(), before);
}

TEST(MemoryTest, ThePeakIsTheStepsOwn) {
  const std::int64_t before = live_bytes();
  torch::zeros({4 * kMebibyte}, torch::kByte);
  const StepMemory memory{c10::Device(c10::kCPU)};
  EXPECT_EQ(memory.peak_bytes(), before);
  torch::zeros({kMebibyte}, torch::kByte);
  torch::zeros({kMebibyte}, torch::kByte);
  EXPECT_EQ(memory.peak_bytes(), before + kMebibyte);
}

TEST(MemoryTest, RawMemoryIsCountedToo) {
  const std::int64_t before = live_bytes();
  void* block = c10::GetCPUAllocator()->raw_allocate(300);
  EXPECT_EQ(live_bytes(), before + 300);
  c10::GetCPUAllocator()->raw_deallocate(block);
  EXPECT_EQ(live_bytes(), before);
}

TEST(MemoryTest, WhatDoesNotFitIsOutOfMemory) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer's allocator ends the program";
  const std::int64_t before = live_bytes();
  EXPECT_THROW(torch::empty({std::int64_t{1} << 50}, torch::kByte), c10::OutOfMemoryError);
  EXPECT_EQ(live_bytes(), before);
}

TEST(MemoryTest, FreedTensorsLeaveTheResidentSize) {
  const std::int64_t before = resident().bytes;
  ASSERT_GT(before, 0);
  if (kSanitized) GTEST_SKIP() << "a sanitizer keeps what is freed";
  const StepMemory memory{c10::Device(c10::kCPU)};
  {
    std::vector<torch::Tensor> tensors;
    for (int i = 0; i < 64; ++i) tensors.push_back(torch::ones({kMebibyte}, torch::kByte));
    EXPECT_GT(resident().bytes, before + 56 * kMebibyte);
  }
  EXPECT_LT(resident().bytes, before + 8 * kMebibyte);
  EXPECT_GE(memory.rss_bytes(), resident().bytes);
}

}  // namespace
}  // namespace ferry::real::train
