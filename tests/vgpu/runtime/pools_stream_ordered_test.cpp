// The entry points of the stream-ordered allocator, as LibTorch and plain CUDA programs call them.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "vgpu/runtime/control.h"
#include "vgpu/runtime/memory_pool.h"

namespace ferry::vgpu {
namespace {

constexpr std::size_t kSegment = MemoryPool::kLeastSegment;

class Notes final : public Listener {
 public:
  void on(const StreamOp& op) override { kinds.push_back(op.kind); }
  void forget(Range range) override { forgotten += range.bytes; }
  void destroy_event(EventId) override {}
  std::vector<StreamOpKind> kinds;
  std::uint64_t forgotten = 0;
};

class StreamOrderedTest : public testing::Test {
 protected:
  StreamOrderedTest() {
    set_device_bytes(2 * kSegment);
    cudaSetDevice(0);
    cudaDeviceGetDefaultMemPool(&pool_, 0);
    for (cudaStream_t* stream : {&first_, &second_}) {
      cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking);
    }
    set_listener(&notes_);
  }
  ~StreamOrderedTest() override {
    set_listener(nullptr);
    keep(0);
    cudaDeviceSynchronize();
    EXPECT_EQ(number(cudaMemPoolAttrReservedMemCurrent), 0u);
    for (const cudaStream_t stream : {first_, second_}) cudaStreamDestroy(stream);
    reset();
  }
  void keep(std::uint64_t bytes) {
    EXPECT_EQ(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &bytes), cudaSuccess);
  }
  std::uint64_t number(cudaMemPoolAttr attribute) {
    std::uint64_t value = 0;
    EXPECT_EQ(cudaMemPoolGetAttribute(pool_, attribute, &value), cudaSuccess);
    return value;
  }
  void* allocate(std::size_t bytes, cudaStream_t stream) {
    void* address = nullptr;
    EXPECT_EQ(cudaMallocAsync(&address, bytes, stream), cudaSuccess);
    return address;
  }

  Notes notes_;
  cudaMemPool_t pool_ = nullptr;
  cudaStream_t first_ = nullptr;
  cudaStream_t second_ = nullptr;
};

TEST_F(StreamOrderedTest, WhatAStreamFreedIsItsOwnAtOnceAndAnothersOnlyInNeed) {
  keep(~std::uint64_t{0});
  void* const freed = allocate(kSegment, first_);
  EXPECT_EQ(cudaFreeAsync(freed, first_), cudaSuccess);
  void* const other = allocate(kSegment, second_);
  EXPECT_NE(other, freed);
  EXPECT_EQ(allocate(kSegment, first_), freed);
  EXPECT_EQ(cudaFreeAsync(freed, first_), cudaSuccess);
  using enum StreamOpKind;
  EXPECT_EQ(notes_.kinds, (std::vector{kAlloc, kFree, kAlloc, kAlloc, kFree}));
  // Nothing else is left: now the second stream waits for the first. What was free as a whole would
  // have gone back to the device; the half of it in use keeps it.
  void* const half = allocate(kSegment / 2, first_);
  notes_.kinds.clear();
  void* const taken = allocate(kSegment / 2, second_);
  EXPECT_EQ(taken, static_cast<char*>(half) + kSegment / 2);
  EXPECT_EQ(notes_.kinds, (std::vector{kRecord, kWait, kAlloc}));
  void* none = nullptr;
  EXPECT_EQ(cudaMallocAsync(&none, 1, second_), cudaErrorMemoryAllocation);
  for (void* const address : {half, taken, other}) {
    EXPECT_EQ(cudaFreeAsync(address, second_), cudaSuccess);
  }
}

TEST_F(StreamOrderedTest, ASynchronisationGivesBackWhatIsOverTheThreshold) {
  keep(kSegment);
  void* const blocks[] = {allocate(kSegment, first_), allocate(kSegment, first_)};
  EXPECT_EQ(number(cudaMemPoolAttrUsedMemHigh), 2 * kSegment);
  for (void* const block : blocks) EXPECT_EQ(cudaFreeAsync(block, first_), cudaSuccess);
  EXPECT_EQ(number(cudaMemPoolAttrReservedMemCurrent), 2 * kSegment);
  EXPECT_EQ(cudaStreamSynchronize(first_), cudaSuccess);
  EXPECT_EQ(number(cudaMemPoolAttrReservedMemCurrent), kSegment);
  EXPECT_EQ(notes_.forgotten, kSegment);
  EXPECT_EQ(cudaMemPoolTrimTo(pool_, 0), cudaSuccess);
  EXPECT_EQ(number(cudaMemPoolAttrReservedMemCurrent), 0u);
  EXPECT_EQ(number(cudaMemPoolAttrReservedMemHigh), 2 * kSegment);
  std::uint64_t zero = 0;
  EXPECT_EQ(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReservedMemHigh, &zero), cudaSuccess);
  EXPECT_EQ(number(cudaMemPoolAttrReservedMemHigh), 0u);
}

TEST_F(StreamOrderedTest, WaitsForAStreamThatIsGoneAreWaitsAllTheSame) {
  cudaStream_t gone = nullptr;
  cudaStreamCreateWithFlags(&gone, cudaStreamNonBlocking);
  keep(~std::uint64_t{0});
  void* const kept = allocate(kSegment, gone);
  void* const half = allocate(kSegment / 2, gone);
  void* const freed = allocate(kSegment / 2, gone);
  EXPECT_EQ(cudaFreeAsync(freed, gone), cudaSuccess);
  cudaStreamDestroy(gone);
  EXPECT_EQ(allocate(kSegment / 2, first_), freed);
  EXPECT_EQ(cudaStreamSynchronize(first_), cudaSuccess);
  for (void* const address : {kept, half, freed}) {
    EXPECT_EQ(cudaFreeAsync(address, first_), cudaSuccess);
  }
}

TEST_F(StreamOrderedTest, WhatIsNoBlockIsRefused) {
  void* const block = allocate(1, first_);
  EXPECT_EQ(cudaFreeAsync(static_cast<char*>(block) + 1, first_), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(block), cudaSuccess) << "it may be given back so as well";
  EXPECT_EQ(cudaFreeAsync(block, first_), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFreeAsync(nullptr, first_), cudaSuccess);
  std::uint64_t one = 1;
  EXPECT_EQ(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrUsedMemHigh, &one),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemPoolTrimTo(nullptr, 0), cudaErrorInvalidValue);
  EXPECT_EQ(cudaDeviceGetDefaultMemPool(&pool_, 7), cudaErrorInvalidDevice);
  cudaDeviceGetDefaultMemPool(&pool_, 0);
}

}  // namespace
}  // namespace ferry::vgpu
