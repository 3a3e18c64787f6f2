// The host pool over the virtual runtime: exact sizes, and no bytes under a copy.
#include "real/cuda/host_pool.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/real/cuda/world.h"

namespace ferry::real {
namespace {

using vgpu::Tempo;

constexpr std::int64_t kPage = 4096;

class HostPools : public testing::Test {
 protected:
  // What a stream was given until now, with something that has not run.
  CudaSnapshotRef pending(int stream) {
    VirtualWorld::set_current(world.stream(stream));
    world.work();
    return events->record(world.stream(stream));
  }
  void finish(const CudaSnapshotRef& event) { event->synchronize(); }

  VirtualWorld world{Tempo::kLazy};
  std::shared_ptr<CudaEvents> events = std::make_shared<CudaEvents>(0, /*timed=*/false);
};

TEST_F(HostPools, SizesAreWholePagesAndExact) {
  HostPool pool({});
  const HostPool::Block small = pool.allocate(1);
  const HostPool::Block odd = pool.allocate(100'000'000);
  EXPECT_EQ(small.bytes, kPage);
  EXPECT_EQ(odd.bytes, 100'003'840) << "no power of two";
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(odd.data) % kPage, 0u);
  pool.free(odd, {});
  const HostPool::Block other = pool.allocate(100'000'000 - 2 * kPage);
  EXPECT_NE(other.data, odd.data) << "another size";
  EXPECT_EQ(pool.allocate(100'000'001).data, odd.data);
}

TEST_F(HostPools, NothingIsNoSize) {
  HostPool pool({});
  EXPECT_THROW(pool.allocate(0), std::invalid_argument);
  EXPECT_THROW(pool.allocate(-1), std::invalid_argument);
  EXPECT_THROW(pool.allocate(std::numeric_limits<std::int64_t>::max()), std::invalid_argument);
}

TEST_F(HostPools, APendingBlockIsNotGivenOut) {
  HostPool pool({});
  const HostPool::Block first = pool.allocate(kPage);
  const CudaSnapshotRef event = pending(1);
  pool.free(first, {&event, 1});
  const HostPool::Block second = pool.allocate(kPage);
  EXPECT_NE(second.data, first.data);
  finish(event);
  EXPECT_EQ(pool.allocate(kPage).data, first.data);
}

TEST_F(HostPools, AnEventNeverRecordedHoldsNothingBack) {
  HostPool pool({});
  const HostPool::Block first = pool.allocate(kPage);
  const CudaSnapshotRef never;
  pool.free(first, {&never, 1});
  EXPECT_EQ(pool.allocate(kPage).data, first.data);
}

TEST_F(HostPools, ABlockThatHangsHoldsBackNoOther) {
  HostPool pool({});
  const HostPool::Block hangs = pool.allocate(kPage);
  const HostPool::Block done = pool.allocate(kPage);
  const CudaSnapshotRef event = pending(1);
  pool.free(hangs, {&event, 1});
  pool.free(done, {});
  EXPECT_EQ(pool.allocate(kPage).data, done.data);
}

TEST_F(HostPools, EveryEventCounts) {
  HostPool pool({});
  const HostPool::Block block = pool.allocate(kPage);
  const std::vector<CudaSnapshotRef> both = {pending(0), pending(1)};
  pool.free(block, both);
  finish(both[1]);
  EXPECT_NE(pool.allocate(kPage).data, block.data);
  finish(both[0]);
  EXPECT_EQ(pool.allocate(kPage).data, block.data);
}

TEST_F(HostPools, AtTheLimitItWaitsBeforeItFails) {
  HostPool pool({.bytes_max = 2 * kPage});
  const HostPool::Block first = pool.allocate(kPage);
  const HostPool::Block second = pool.allocate(kPage);
  const std::vector<CudaSnapshotRef> both = {pending(0), pending(1)};
  pool.free(first, {&both[0], 1});
  pool.free(second, {&both[1], 1});
  EXPECT_EQ(pool.allocate(kPage).data, first.data) << "the one freed longest ago";
  EXPECT_TRUE(both[0]->done());
  EXPECT_FALSE(both[1]->done()) << "and no other is waited for";
  EXPECT_THROW(pool.allocate(2 * kPage), OutOfHostMemory) << "another size, and one page in use";
  EXPECT_TRUE(both[1]->done()) << "given back to make room";
  EXPECT_EQ(pool.statistics().held_bytes(), kPage);
}

TEST_F(HostPools, TheErrorSaysHowMuchThereIs) {
  HostPool pool({.bytes_max = 3 * kPage});
  const HostPool::Block block = pool.allocate(2 * kPage);
  try {
    pool.allocate(2 * kPage);
    FAIL() << "beyond the limit";
  } catch (const OutOfHostMemory& error) {
    EXPECT_STREQ(error.what(),
                 "out of pinned host memory: tried to pin 8192 bytes; 8192 bytes are held, of "
                 "which 8192 in use, of a limit of 12288 (the limit is reached)");
  }
  pool.free(block, {});
  EXPECT_NO_THROW(pool.allocate(3 * kPage));
}

TEST_F(HostPools, WhereTheSystemRefusesTheCacheGoesBackFirst) {
  vgpu::set_pinned_bytes(vgpu::counts().pinned_bytes + 4 * kPage);
  HostPool pool({.cached_bytes_max = 16 * kPage});
  const HostPool::Block first = pool.allocate(3 * kPage);
  const CudaSnapshotRef event = pending(1);
  pool.free(first, {&event, 1});
  const HostPool::Block second = pool.allocate(2 * kPage);
  EXPECT_TRUE(event->done());
  EXPECT_EQ(pool.statistics().held_bytes(), 2 * kPage);
  try {
    pool.allocate(3 * kPage);
    FAIL() << "there is no more";
  } catch (const OutOfHostMemory& error) {
    EXPECT_NE(std::string(error.what()).find("(out of memory)"), std::string::npos) << error.what();
  }
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess) << "no error is left for the next one to find";
  pool.free(second, {});
}

TEST_F(HostPools, AnotherErrorOfTheSystemsIsThrownAsItIs) {
  HostPool pool({});
  vgpu::fail("cudaHostAlloc", 0, cudaErrorLaunchFailure);
  EXPECT_THROW(pool.allocate(kPage), c10::Error);
  EXPECT_EQ(pool.statistics().held_bytes(), 0);
  EXPECT_NO_THROW(pool.allocate(kPage));
}

TEST_F(HostPools, WhatIsCachedIsBounded) {
  HostPool pool({});
  for (std::int64_t pages = 1; pages <= 64; ++pages) {
    pool.free(pool.allocate(pages * kPage), {});
    EXPECT_LE(pool.statistics().cached_bytes, 64 * kPage);
    EXPECT_LE(pool.statistics().cached_bytes, pool.statistics().in_use_peak_bytes);
  }
  pool.trim();
  EXPECT_EQ(pool.statistics().held_bytes(), 0);
}

TEST_F(HostPools, ASteadyStepPinsNothingNew) {
  HostPool pool({});
  for (int step = 0; step < 4; ++step) {
    std::vector<HostPool::Block> blocks;
    for (int i = 1; i < 20; ++i) blocks.push_back(pool.allocate(i * 5000));
    for (const HostPool::Block& block : blocks) pool.free(block, {});
  }
  EXPECT_EQ(pool.statistics().system_calls, 19);
}

TEST_F(HostPools, TrimLeavesWhatIsPending) {
  HostPool pool({});
  const HostPool::Block block = pool.allocate(kPage);
  const CudaSnapshotRef event = pending(1);
  pool.free(block, {&event, 1});
  pool.trim();
  EXPECT_EQ(pool.statistics().cached_bytes, kPage);
  finish(event);
  pool.trim();
  EXPECT_EQ(pool.statistics().cached_bytes, 0);
}

TEST_F(HostPools, PageableMemoryGoesBackWhenItsCopiesAreDone) {
  const std::int64_t pinned = vgpu::calls("cudaHostAlloc");
  HostPool pool({.kind = HostMemory::kPageable, .cached_bytes_max = 0});
  const HostPool::Block block = pool.allocate(kPage);
  EXPECT_EQ(vgpu::calls("cudaHostAlloc"), pinned);
  const CudaSnapshotRef event = pending(1);
  pool.free(block, {&event, 1});
  EXPECT_EQ(pool.statistics().cached_bytes, kPage);
  finish(event);
  pool.free(pool.allocate(kPage), {});
  EXPECT_EQ(pool.statistics().held_bytes(), 0);
}

TEST_F(HostPools, TheEndWaitsForWhatIsPending) {
  const std::int64_t before = vgpu::counts().pinned_bytes;
  CudaSnapshotRef event;
  {
    HostPool pool({});
    event = pending(1);
    pool.free(pool.allocate(kPage), {&event, 1});
  }
  EXPECT_TRUE(event->done());
  EXPECT_EQ(vgpu::counts().pinned_bytes, before);
  EXPECT_EQ(world.hazards(), std::vector<std::string>{});
}

TEST_F(HostPools, WhereCudaIsGoneItLeaksAndDoesNotCrash) {
  const std::int64_t before = vgpu::counts().pinned_bytes;
  {
    HostPool pool({});
    const HostPool::Block block = pool.allocate(kPage);
    const CudaSnapshotRef event = pending(1);
    vgpu::break_device(cudaErrorCudartUnloading);
    pool.free(block, {&event, 1});
    EXPECT_THROW(pool.allocate(kPage), c10::Error) << "whoever asks is told";
    EXPECT_EQ(pool.statistics().cached_bytes, kPage) << "and the block waits";
  }
  vgpu::break_device(cudaSuccess);
  EXPECT_EQ(vgpu::counts().pinned_bytes, before + kPage);
}

}  // namespace
}  // namespace ferry::real
