#include "vgpu/runtime/faults.h"

#include <gtest/gtest.h>

#include "vgpu/runtime/thread.h"

namespace ferry::vgpu {
namespace {

class FaultsTest : public testing::Test {
 protected:
  ~FaultsTest() override { thread().step = Step::kUser; }
  Faults faults_;
};

TEST_F(FaultsTest, ThePlannedCallFailsOnceAndNoOther) {
  faults_.plan("cudaMalloc", 1, cudaErrorMemoryAllocation, Where::kAnywhere);
  EXPECT_EQ(faults_.take_error("cudaFree"), cudaSuccess);
  EXPECT_EQ(faults_.take_error("cudaMalloc"), cudaSuccess);
  EXPECT_TRUE(faults_.is_planned("cudaMalloc"));
  EXPECT_EQ(faults_.take_error("cudaMalloc"), cudaErrorMemoryAllocation);
  EXPECT_FALSE(faults_.is_planned("cudaMalloc"));
  EXPECT_EQ(faults_.take_error("cudaMalloc"), cudaSuccess);
}

TEST_F(FaultsTest, InAStepTheCoresCallsAloneAreCounted) {
  faults_.plan("cudaMalloc", 0, cudaErrorMemoryAllocation, Where::kInAStep);
  EXPECT_EQ(faults_.take_error("cudaMalloc"), cudaSuccess);
  thread().step = Step::kProduced;
  EXPECT_EQ(faults_.take_error("cudaMalloc"), cudaErrorMemoryAllocation);
}

TEST_F(FaultsTest, ABrokenDeviceFailsEveryCallAndUsesUpNothing) {
  faults_.plan("cudaMalloc", 0, cudaErrorMemoryAllocation, Where::kAnywhere);
  faults_.break_device(cudaErrorIllegalAddress);
  EXPECT_EQ(faults_.take_error("cudaMalloc"), cudaErrorIllegalAddress);
  EXPECT_EQ(faults_.take_error("cudaFree"), cudaErrorIllegalAddress);
  faults_.break_device(cudaSuccess);
  EXPECT_EQ(faults_.take_error("cudaFree"), cudaSuccess);
  EXPECT_EQ(faults_.take_error("cudaMalloc"), cudaErrorMemoryAllocation);
}

TEST_F(FaultsTest, ToAskForCallsCountsNone) {
  EXPECT_EQ(faults_.calls("cudaMalloc"), 0);
  faults_.count_call("cudaMalloc");
  EXPECT_EQ(faults_.calls("cudaMalloc"), 1);
  EXPECT_EQ(faults_.calls("cudaMalloc"), 1);
}

}  // namespace
}  // namespace ferry::vgpu
