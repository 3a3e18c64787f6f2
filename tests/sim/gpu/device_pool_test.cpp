#include "sim/gpu/device_pool.h"

#include <gtest/gtest.h>

#include "formats/error.h"
#include "tests/sim/gpu/pool_clock.h"
#include "tests/sim/support/sizes.h"

namespace ferry::sim {
namespace {

using test::kMiB;

constexpr StreamId kMain{0};
constexpr StreamId kSide{1};

struct DevicePoolTest : ::testing::Test {
  PoolClock clock;
  DevicePool pool{0, 0, clock};
  std::int64_t reserved() const { return pool.stats().reserved_bytes.current; }
  std::int64_t allocated() const { return pool.stats().allocated_bytes.current; }
};

// The figures of the next four were seen on an H100.

TEST_F(DevicePoolTest, LargeSegmentsComeInTwoMiBSteps) {
  pool.allocate(2'000'000'000, kMain);
  EXPECT_EQ(reserved(), 2'000'683'008);
  pool.allocate(200'000'000, kMain);
  EXPECT_EQ(reserved(), 2'202'009'600);
}

TEST_F(DevicePoolTest, SmallRequestsShareATwoMiBSegment) {
  const Block* first = pool.allocate(200'000, kMain);
  EXPECT_EQ(reserved(), 2 * kMiB);
  const Block* second = pool.allocate(kMiB, kMain);
  EXPECT_EQ(second->address(), first->address() + 200'192);
  EXPECT_EQ(reserved(), 2 * kMiB);
}

TEST_F(DevicePoolTest, ASmallRestOfALargeBlockStaysWithIt) {
  const Block* block = pool.allocate(1'000'000'000, kMain);
  EXPECT_EQ(block->bytes(), 1'000'341'504);
  EXPECT_EQ(block->requested_bytes(), 1'000'000'000);
  EXPECT_EQ(pool.stats().requested_bytes.current, 1'000'000'000);
  EXPECT_EQ(allocated(), 1'000'341'504);
}

TEST_F(DevicePoolTest, RoundsToHalfKiB) {
  EXPECT_EQ(pool.allocate(1, kMain)->bytes(), 512);
  EXPECT_EQ(pool.allocate(512, kMain)->bytes(), 512);
  EXPECT_EQ(pool.allocate(513, kMain)->bytes(), 1024);
  EXPECT_EQ(pool.allocate(0, kMain), nullptr);
}

TEST_F(DevicePoolTest, SegmentSizesFollowTheRoundedSize) {
  pool.allocate(kMiB + 1, kMain);
  EXPECT_EQ(reserved(), 20 * kMiB);
  DevicePool other{1, 0, clock};
  other.allocate(10 * kMiB - 1, kMain);  // rounds to 10 MiB
  EXPECT_EQ(other.stats().reserved_bytes.current, 10 * kMiB);
}

TEST_F(DevicePoolTest, AFreedBlockServesItsOwnStreamOnly) {
  Block* block = pool.allocate(kMiB, kMain);
  const std::uint64_t address = block->address();
  pool.free(block);
  EXPECT_NE(pool.allocate(kMiB, kSide)->address(), address);
  EXPECT_EQ(pool.allocate(kMiB, kMain)->address(), address);
}

TEST_F(DevicePoolTest, BestFitThenOldestSegment) {
  Block* large = pool.allocate(60 * kMiB, kMain);
  Block* fit_a = pool.allocate(40 * kMiB, kMain);
  Block* fit_b = pool.allocate(40 * kMiB, kMain);
  const std::uint64_t oldest = fit_a->address();
  pool.free(large);
  pool.free(fit_b);
  pool.free(fit_a);
  EXPECT_EQ(pool.allocate(39 * kMiB, kMain)->address(), oldest);
}

TEST_F(DevicePoolTest, NeighboursMergeInAnyOrder) {
  Block* a = pool.allocate(4 * kMiB, kMain);
  Block* b = pool.allocate(4 * kMiB, kMain);
  Block* c = pool.allocate(4 * kMiB, kMain);
  pool.free(a);
  pool.free(c);
  EXPECT_EQ(pool.free_blocks(), 2);
  pool.free(b);
  EXPECT_EQ(pool.free_blocks(), 1);
  EXPECT_EQ(pool.allocate(20 * kMiB, kMain)->bytes(), 20 * kMiB);
  EXPECT_EQ(pool.segments(), 1);
}

TEST_F(DevicePoolTest, UseOnAnotherStreamDefersTheFree) {
  Block* block = pool.allocate(kMiB, kMain);
  const std::uint64_t address = block->address();
  pool.record_use(block, kSide);
  pool.record_use(block, kSide);
  pool.free(block);
  EXPECT_EQ(clock.live(), 1u);
  EXPECT_EQ(allocated(), 0);
  EXPECT_EQ(pool.stats().active_bytes.current, kMiB);
  Block* second = pool.allocate(kMiB, kMain);
  EXPECT_NE(second->address(), address);
  clock.finish(kSide);
  pool.free(second);
  EXPECT_EQ(pool.allocate(kMiB, kMain)->address(), address);
  EXPECT_EQ(clock.live(), 0u);
}

TEST_F(DevicePoolTest, UseOnTheOwnStreamDefersNothing) {
  Block* block = pool.allocate(kMiB, kMain);
  pool.record_use(block, kMain);
  pool.free(block);
  EXPECT_EQ(pool.stats().active_bytes.current, 0);
}

TEST_F(DevicePoolTest, ABlockWaitsForEveryStreamThatUsedIt) {
  Block* block = pool.allocate(kMiB, kMain);
  pool.record_use(block, kSide);
  pool.record_use(block, StreamId{2});
  pool.free(block);
  clock.finish(kSide);
  pool.free(pool.allocate(512, kMain));  // polls
  EXPECT_EQ(pool.stats().active_bytes.current, kMiB);
  clock.finish(StreamId{2});
  pool.free(pool.allocate(512, kMain));
  EXPECT_EQ(pool.stats().active_bytes.current, 0);
}

TEST(DevicePoolLimit, CachedSegmentsAreGivenBackBeforeItFails) {
  PoolClock clock;
  DevicePool pool{0, 64 * kMiB, clock};
  Block* block = pool.allocate(40 * kMiB, kSide);
  pool.record_use(block, kMain);
  pool.free(block);
  EXPECT_EQ(pool.allocate(40 * kMiB, kMain)->bytes(), 40 * kMiB);
  EXPECT_EQ(clock.waits, 1);
  EXPECT_EQ(pool.stats().num_alloc_retries, 1);
  EXPECT_EQ(pool.stats().reserved_bytes.current, 40 * kMiB);
  EXPECT_EQ(pool.stats().reserved_bytes.peak, 40 * kMiB);
}

TEST(DevicePoolLimit, OutOfMemoryTellsPyTorchsFigures) {
  PoolClock clock;
  DevicePool pool{3, 50 * kMiB, clock};
  pool.allocate(36 * kMiB, kMain);
  try {
    pool.allocate(3 * kMiB / 2, kMain);
    FAIL() << "it fits";
  } catch (const OutOfMemory& error) {
    EXPECT_STREQ(error.what(),
                 "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 3 has a total capacity of "
                 "50.00 MiB of which 14.00 MiB is free. Of the allocated memory 36.00 MiB is "
                 "allocated by PyTorch, and 0 bytes is reserved by PyTorch but unallocated. If "
                 "reserved but unallocated memory is large try setting "
                 "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See "
                 "documentation for Memory Management  "
                 "(https://docs.pytorch.org/docs/stable/notes/cuda.html"
                 "#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)");
    EXPECT_EQ(error.requested_bytes, 3 * kMiB / 2);
    EXPECT_EQ(error.segment_bytes, 20 * kMiB);
    EXPECT_EQ(error.total_bytes, 50 * kMiB);
    EXPECT_EQ(error.free_bytes, 14 * kMiB);
    EXPECT_EQ(error.allocated_bytes, 36 * kMiB);
    EXPECT_EQ(error.reserved_bytes, 36 * kMiB);
  }
  EXPECT_EQ(pool.stats().num_ooms, 1);
  EXPECT_EQ(pool.allocate(14 * kMiB, kMain)->bytes(), 14 * kMiB);  // it goes on
}

// A step of 400 micro-batches, all of them alive, ended the program here.
TEST_F(DevicePoolTest, WithoutAddressesItRefusesAndGoesOn) {
  Block* first = pool.allocate(std::int64_t{9} << 40, kMain);
  EXPECT_THROW(pool.allocate(std::int64_t{9} << 40, kMain), LimitReached);
  EXPECT_THROW(pool.allocate((std::int64_t{1} << 62), kMain), LimitReached);
  EXPECT_EQ(pool.stats().num_ooms, 2);
  EXPECT_EQ(pool.stats().allocated_bytes.current, std::int64_t{9} << 40);
  pool.free(first);
  EXPECT_EQ(pool.allocate(std::int64_t{9} << 40, kMain)->address(), std::uint64_t{7 + 16} << 40);
}

TEST_F(DevicePoolTest, PeaksAreKeptUntilReset) {
  Block* block = pool.allocate(kMiB, kMain);
  pool.free(block);
  EXPECT_EQ(pool.stats().allocated_bytes.peak, kMiB);
  pool.reset_peaks();
  EXPECT_EQ(pool.stats().allocated_bytes.peak, 0);
  EXPECT_EQ(pool.stats().reserved_bytes.peak, 2 * kMiB);
}

TEST_F(DevicePoolTest, DevicesHaveRangesOfTheirOwn) {
  DevicePool second{1, 0, clock};
  constexpr std::uint64_t kPiece = SegmentAddresses::kPiece;
  EXPECT_EQ(pool.allocate(1, kMain)->address(), (std::uint64_t{2} << 44) - kPiece);
  EXPECT_EQ(second.allocate(1, kMain)->address(), (std::uint64_t{3} << 44) - kPiece);
}

TEST(PytorchSize, IsWhatPyTorchSays) {
  EXPECT_EQ(pytorch_size(1024), "1024 bytes");
  EXPECT_EQ(pytorch_size(1025), "1.00 KiB");
  EXPECT_EQ(pytorch_size(kMiB), "1024.00 KiB");
  EXPECT_EQ(pytorch_size(20 * kMiB), "20.00 MiB");
  EXPECT_EQ(pytorch_size(80LL << 30), "80.00 GiB");
}

}  // namespace
}  // namespace ferry::sim
