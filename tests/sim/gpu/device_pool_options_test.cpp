// The allocator's options, one behaviour each; tests/vgpu/allocator holds them all against
// PyTorch's own.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "formats/alloc_conf.h"
#include "sim/gpu/device_pool.h"
#include "tests/sim/gpu/pool_clock.h"
#include "tests/sim/support/sizes.h"

namespace ferry::sim {
namespace {

using test::kMiB;

constexpr StreamId kMain{0};
constexpr StreamId kSide{1};

struct DevicePoolOptionsTest : ::testing::Test {
  DevicePool& with(const std::string& conf, std::int64_t total_mib = 0) {
    pool = std::make_unique<DevicePool>(
        0,
        DevicePoolOptions{.total_bytes = total_mib * kMiB, .conf = parse_alloc_conf(conf, "conf")},
        clock);
    return *pool;
  }
  std::int64_t reserved() const { return pool->stats().reserved_bytes.current; }

  PoolClock clock;
  std::unique_ptr<DevicePool> pool;
};

TEST_F(DevicePoolOptionsTest, SizesAreRoundedToPartsOfAPowerOfTwo) {
  with("roundup_power2_divisions:4");
  EXPECT_EQ(pool->allocate(1200 * 1024, kMain)->bytes(), 1280 * 1024);
  EXPECT_EQ(pool->allocate(2048, kMain)->bytes(), 2048);
  EXPECT_EQ(pool->allocate(2049, kMain)->bytes(), 2560);
  EXPECT_EQ(pool->allocate(1000, kMain)->bytes(), 1024);  // at most four times 512: as usual
}

TEST_F(DevicePoolOptionsTest, OfEqualBlocksEachPyTorchTakesAnother) {
  const auto taken = [&](EqualBlocks equal) {
    AllocConf conf;
    conf.equal_blocks = equal;
    pool = std::make_unique<DevicePool>(0, DevicePoolOptions{.conf = conf}, clock);
    std::vector<Block*> segments;
    std::vector<std::uint64_t> addresses;  // from the top down
    for (int i = 0; i < 3; ++i) {
      segments.push_back(pool->allocate(60 * kMiB, kMain));
      addresses.push_back(segments.back()->address());
    }
    // The first segment is whole again as a block that is younger than the second segment's.
    pool->free(segments[0]);
    pool->free(pool->allocate(30 * kMiB, kMain));
    pool->free(segments[1]);
    pool->free(segments[2]);
    const std::uint64_t address = pool->allocate(60 * kMiB, kMain)->address();
    return std::find(addresses.begin(), addresses.end(), address) - addresses.begin();
  };
  EXPECT_EQ(taken(equal_blocks_of("1.13.1")), 2);
  EXPECT_EQ(taken(equal_blocks_of("2.10.0")), 2);
  EXPECT_EQ(taken(equal_blocks_of("2.11.0+cu130")), 2);
  EXPECT_EQ(taken(equal_blocks_of("2.12.1")), 1);
  EXPECT_EQ(taken(equal_blocks_of("2.13.0")), 0);
  EXPECT_EQ(taken(equal_blocks_of("2.15.0")), 0);
  EXPECT_EQ(taken(equal_blocks_of("3.0.0")), 0);
  EXPECT_EQ(taken(equal_blocks_of("")), 0);
}

TEST(KeepsWorkspaces, UntilTorch214) {
  for (const char* const torch : {"1.13.1", "2.11.0+cu130", "2.14.1", "", "main"}) {
    EXPECT_TRUE(keeps_workspaces(torch)) << torch;
  }
  for (const char* const torch : {"2.15.0+cu132", "2.16.0", "3.0"}) {
    EXPECT_FALSE(keeps_workspaces(torch)) << torch;
  }
}

TEST_F(DevicePoolOptionsTest, AMiddlingRequestGetsALargeSegmentOfItsOwnSize) {
  with("large_segment_size_mb:12").allocate(2 * kMiB, kMain);
  EXPECT_EQ(reserved(), 12 * kMiB);
}

TEST_F(DevicePoolOptionsTest, AboveTheLargestSplitABlockIsKeptForItsLike) {
  with("max_split_size_mb:20");
  Block* large = pool->allocate(60 * kMiB, kMain);
  const std::uint64_t address = large->address();
  pool->free(large);
  EXPECT_NE(pool->allocate(19 * kMiB, kMain)->address(), address);  // it would be split
  EXPECT_NE(pool->allocate(40 * kMiB, kMain)->address(), address);  // 20 MiB too large
  Block* near = pool->allocate(41 * kMiB, kMain);
  EXPECT_EQ(near->address(), address);
  EXPECT_EQ(near->bytes(), 60 * kMiB);
}

TEST_F(DevicePoolOptionsTest, AboveTheLargestSplitEnoughIsGivenBackAndNoMore) {
  with("max_split_size_mb:20", 100);
  for (Block* block : {pool->allocate(30 * kMiB, kMain), pool->allocate(60 * kMiB, kMain)}) {
    pool->free(block);
  }
  pool->allocate(64 * kMiB, kMain);  // neither will do; both go, the largest first
  EXPECT_EQ(reserved(), 64 * kMiB);
  EXPECT_EQ(pool->stats().num_alloc_retries, 0);
}

TEST_F(DevicePoolOptionsTest, TheFractionIsALimitOfItsOwn) {
  with("per_process_memory_fraction:0.5", 100);
  pool->allocate(40 * kMiB, kMain);
  try {
    pool->allocate(12 * kMiB, kMain);
    FAIL() << "it is allowed";
  } catch (const OutOfMemory& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("of which 60.00 MiB is free. 50.00 MiB allowed; Of the"), text.npos);
  }
}

TEST_F(DevicePoolOptionsTest, WhatNobodyTookForLongIsCollected) {
  with("per_process_memory_fraction:0.9,garbage_collection_threshold:0.3", 200);
  Block* old = pool->allocate(30 * kMiB, kMain);
  pool->free(old);
  for (int i = 0; i < 4; ++i) pool->free(pool->allocate(50 * kMiB, kMain));
  pool->allocate(60 * kMiB, kMain);  // the old one goes: it is older than the average
  EXPECT_EQ(reserved(), 110 * kMiB);
}

TEST_F(DevicePoolOptionsTest, AnExpandableSegmentGrowsInPagesAndShrinksByThem) {
  with("expandable_segments:True", 400);
  Block* first = pool->allocate(30 * kMiB, kMain);
  EXPECT_EQ(reserved(), 40 * kMiB);
  Block* second = pool->allocate(30 * kMiB, kMain);
  EXPECT_EQ(second->address(), first->address() + 30 * kMiB);
  EXPECT_EQ(reserved(), 60 * kMiB);
  EXPECT_EQ(pool->segments(), 1);
  pool->free(first);
  pool->empty_cache();  // the second one covers half of a page
  EXPECT_EQ(reserved(), 40 * kMiB);
  EXPECT_EQ(pool->allocate(30 * kMiB, kMain)->address(), first->segment().address);
  EXPECT_EQ(reserved(), 60 * kMiB);
}

TEST_F(DevicePoolOptionsTest, AnExpandableSegmentIsAStreamsAndGoesWhenItIsEmpty) {
  with("expandable_segments:True", 400);
  Block* main = pool->allocate(2 * kMiB, kMain);
  Block* side = pool->allocate(2 * kMiB, kSide);
  Block* small = pool->allocate(1, kMain);
  EXPECT_EQ(pool->segments(), 3);
  EXPECT_EQ(reserved(), 42 * kMiB);
  for (Block* block : {main, side, small}) pool->free(block);
  pool->empty_cache();
  EXPECT_EQ(pool->segments(), 0);
  EXPECT_EQ(reserved(), 0);
}

// The addresses that it reserves are an eighth more than the device has.
TEST_F(DevicePoolOptionsTest, WithoutALimitExpandableSegmentsStillHaveAddresses) {
  with("expandable_segments:True");
  EXPECT_EQ(pool->allocate(std::int64_t{3} << 40, kMain)->bytes(), std::int64_t{3} << 40);
  EXPECT_EQ(pool->allocate(600 * kMiB, kMain)->bytes(), 600 * kMiB);
}

}  // namespace
}  // namespace ferry::sim
