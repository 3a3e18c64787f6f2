// The virtual runtime keeps CUDA's least promises, and no more than those.
#include "vgpu/runtime/control.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

namespace ferry::vgpu {
namespace {

class VirtualCuda : public testing::Test {
 protected:
  VirtualCuda() {
    reset();
    set_tempo(Tempo::kLazy, 0);
    cudaSetDevice(0);
    cudaStreamCreateWithFlags(&first_, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&second_, cudaStreamNonBlocking);
    cudaStreamCreate(&blocking_);
    cudaEventCreateWithFlags(&event_, cudaEventDisableTiming);
  }
  ~VirtualCuda() override {
    cudaEventDestroy(event_);
    for (const cudaStream_t stream : {first_, second_, blocking_}) cudaStreamDestroy(stream);
    reset();
  }
  // Notes its name when it runs.
  void run(cudaStream_t stream, const std::string& name) {
    launch(stream, "note", {}, {}, [this, name] { ran_ += name; });
  }

  cudaStream_t first_ = nullptr;
  cudaStream_t second_ = nullptr;
  cudaStream_t blocking_ = nullptr;
  cudaEvent_t event_ = nullptr;
  std::string ran_;
};

TEST_F(VirtualCuda, AQueryRunsNothingAndAWaitNoMoreThanItMust) {
  run(first_, "a");
  cudaEventRecord(event_, first_);
  run(first_, "b");
  run(second_, "c");
  EXPECT_EQ(cudaEventQuery(event_), cudaErrorNotReady);
  EXPECT_EQ(ran_, "");
  EXPECT_EQ(cudaEventSynchronize(event_), cudaSuccess);
  EXPECT_EQ(ran_, "a");
  EXPECT_EQ(cudaEventQuery(event_), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(first_), cudaErrorNotReady);
  cudaDeviceSynchronize();
  EXPECT_EQ(ran_, "abc");
}

TEST_F(VirtualCuda, AWaitTakesWhatTheEventHoldsAtTheCall) {
  run(first_, "a");
  cudaEventRecord(event_, first_);
  cudaStreamWaitEvent(second_, event_, 0);
  run(first_, "b");
  cudaEventRecord(event_, first_);
  run(second_, "c");
  cudaStreamSynchronize(second_);
  EXPECT_EQ(ran_, "ac");
}

TEST_F(VirtualCuda, AnEventNeverRecordedOrdersNothing) {
  run(first_, "a");
  EXPECT_EQ(cudaStreamWaitEvent(second_, event_, 0), cudaSuccess);
  EXPECT_EQ(cudaEventSynchronize(event_), cudaSuccess);
  run(second_, "b");
  cudaStreamSynchronize(second_);
  EXPECT_EQ(ran_, "b");
}

TEST_F(VirtualCuda, ADestroyedEventsWaitsHold) {
  run(first_, "a");
  cudaEvent_t gone = nullptr;
  cudaEventCreate(&gone);
  cudaEventRecord(gone, first_);
  cudaStreamWaitEvent(second_, gone, 0);
  EXPECT_EQ(cudaEventDestroy(gone), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(gone, first_), cudaErrorInvalidResourceHandle);
  run(second_, "b");
  cudaStreamSynchronize(second_);
  EXPECT_EQ(ran_, "ab");
}

TEST_F(VirtualCuda, TheDefaultStreamWaitsForBlockingStreamsAndTheyForIt) {
  run(blocking_, "a");
  run(nullptr, "b");
  run(blocking_, "c");
  run(first_, "x");
  cudaStreamSynchronize(blocking_);
  EXPECT_EQ(ran_, "abc");
}

TEST_F(VirtualCuda, NonBlockingStreamsPassTheDefaultStream) {
  run(nullptr, "a");
  run(first_, "b");
  cudaStreamSynchronize(first_);
  EXPECT_EQ(ran_, "b");
}

TEST_F(VirtualCuda, UnorderedStreamsRunInEitherOrder) {
  std::set<std::string> orders;
  for (std::uint64_t seed = 0; seed < 32; ++seed) {
    set_tempo(Tempo::kMixed, seed);
    ran_.clear();
    run(first_, "a");
    run(second_, "b");
    cudaStreamSynchronize(second_);
    cudaStreamSynchronize(first_);
    orders.insert(ran_);
  }
  EXPECT_EQ(orders, (std::set<std::string>{"ab", "ba"}));
}

TEST_F(VirtualCuda, ACopyReadsWhenItRuns) {
  int* device = nullptr;
  int* host = nullptr;
  cudaMalloc(reinterpret_cast<void**>(&device), sizeof(int));
  cudaHostAlloc(reinterpret_cast<void**>(&host), sizeof(int), 0);
  *host = 1;
  cudaMemcpyAsync(device, host, sizeof(int), cudaMemcpyHostToDevice, first_);
  *host = 2;
  cudaStreamSynchronize(first_);
  EXPECT_EQ(*device, 2) << "the program's mistake";
  cudaMemcpyAsync(device, host, sizeof(int), cudaMemcpyHostToDevice, first_);
  cudaFreeHost(host);
  cudaStreamSynchronize(first_);
  EXPECT_EQ(static_cast<unsigned>(*device), 0xddddddddu) << "likewise";
  cudaMemsetAsync(device, 0, sizeof(int), first_);
  cudaFree(device);
  EXPECT_EQ(counts().queued, 0) << "it waits for the device";
}

TEST_F(VirtualCuda, PageableMemoryIsStagedOrNotAsTheSeedHasIt) {
  int* device = nullptr;
  cudaMalloc(reinterpret_cast<void**>(&device), sizeof(int));
  std::set<int> seen;
  for (std::uint64_t seed = 0; seed < 16; ++seed) {
    set_tempo(Tempo::kMixed, seed);
    set_tempo(first_, Tempo::kLazy);
    int host = 1;
    cudaMemcpyAsync(device, &host, sizeof(int), cudaMemcpyHostToDevice, first_);
    host = 2;
    cudaStreamSynchronize(first_);
    seen.insert(*device);
  }
  EXPECT_EQ(seen, (std::set<int>{1, 2}));
  cudaFree(device);
}

TEST_F(VirtualCuda, WrongPointersAreRefused) {
  int host = 0;
  EXPECT_EQ(cudaMemcpyAsync(&host, &host, 4, cudaMemcpyHostToDevice, first_),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(&host), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFreeHost(&host), cudaErrorInvalidValue);
  EXPECT_EQ(counts().wrong_frees, 2);
}

TEST_F(VirtualCuda, MemoryEndsWhereItIsToldTo) {
  std::size_t free = 0;
  std::size_t total = 0;
  EXPECT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  set_device_bytes(static_cast<std::int64_t>(total - free) + (1 << 20));
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, (1 << 20) + 1), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&memory, 1 << 20), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST_F(VirtualCuda, TheNthCallFailsAndEnqueuesNothing) {
  fail("cudaEventRecord", 1, cudaErrorLaunchFailure);
  run(first_, "a");
  EXPECT_EQ(cudaEventRecord(event_, first_), cudaSuccess);
  EXPECT_FALSE(failed("cudaEventRecord"));
  run(first_, "b");
  EXPECT_EQ(cudaEventRecord(event_, first_), cudaErrorLaunchFailure);
  EXPECT_TRUE(failed("cudaEventRecord"));
  cudaEventSynchronize(event_);
  EXPECT_EQ(ran_, "a") << "the event holds what it held";
  EXPECT_EQ(cudaEventRecord(event_, first_), cudaSuccess);
}

TEST_F(VirtualCuda, WhatIsNotThereFailsAndIsCounted) {
  EXPECT_EQ(cudaLaunchKernel(nullptr, {}, {}, nullptr, 0, first_), cudaErrorNotSupported);
  const auto before = counts().refusals["cudaHostUnregister"];
  EXPECT_EQ(cudaHostUnregister(nullptr), cudaErrorNotSupported);
  EXPECT_STREQ(cudaGetErrorString(cudaErrorNotSupported),
               "the virtual GPU does not have cudaHostUnregister");
  EXPECT_EQ(counts().refusals["cudaHostUnregister"], before + 1);
}

TEST_F(VirtualCuda, AnAttributeIsThatOfThePropertiesOrIsRefused) {
  cudaDeviceProp properties{};
  ASSERT_EQ(cudaGetDeviceProperties(&properties, 1), cudaSuccess);
  int value = 0;
  EXPECT_EQ(cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, 1), cudaSuccess);
  EXPECT_EQ(value, properties.major);
  EXPECT_EQ(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 1), cudaSuccess);
  EXPECT_EQ(value, properties.multiProcessorCount);
  EXPECT_EQ(cudaDeviceGetAttribute(&value, cudaDevAttrMaxPitch, 1), cudaErrorNotSupported);
  EXPECT_EQ(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 9), cudaErrorInvalidDevice);
}

TEST_F(VirtualCuda, EachThreadHasADefaultStreamOfItsOwn) {
  run(cudaStreamPerThread, "a");
  std::thread([&] {
    run(cudaStreamPerThread, "b");
    EXPECT_EQ(cudaStreamSynchronize(cudaStreamPerThread), cudaSuccess);
  }).join();
  EXPECT_EQ(ran_, "b");
  run(nullptr, "c");  // it blocks, as streams do that one makes
  cudaStreamSynchronize(nullptr);
  EXPECT_EQ(ran_, "bac");
}

}  // namespace
}  // namespace ferry::vgpu
