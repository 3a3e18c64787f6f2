#include "sim/gpu/host_pool.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/sim/gpu/pool_clock.h"

namespace ferry::sim {
namespace {

constexpr std::int64_t kPage = 4096;

struct HostPoolTest : ::testing::Test {
  PoolClock clock;
  HostPool pool{0, clock};
  PoolToken free_pending(HostPool& from, const HostBlock& block) {
    const std::array<PoolToken, 1> until = {clock.record(StreamId{0})};
    from.free(block, until);
    return until[0];
  }
};

TEST_F(HostPoolTest, RoundsUpToPages) {
  EXPECT_EQ(pool.allocate(1).bytes, kPage);
  EXPECT_EQ(pool.allocate(kPage).bytes, kPage);
  const HostBlock block = pool.allocate(kPage + 1);
  EXPECT_EQ(block.bytes, 2 * kPage);
  EXPECT_EQ(block.requested_bytes, kPage + 1);
  EXPECT_EQ(block.address, (std::uint64_t{1} << 60) + 2 * kPage);
}

TEST_F(HostPoolTest, ServesAnEqualSizeOnlyTheOldestFirst) {
  const HostBlock a = pool.allocate(kPage);
  const HostBlock b = pool.allocate(kPage);
  pool.free(b, {});
  pool.free(a, {});
  EXPECT_NE(pool.allocate(2 * kPage).address, b.address);
  EXPECT_EQ(pool.allocate(100).address, b.address);
  EXPECT_EQ(pool.allocate(100).address, a.address);
}

TEST_F(HostPoolTest, ABufferUnderACopyIsNotGivenOut) {
  const HostBlock a = pool.allocate(kPage);
  const PoolToken copy = free_pending(pool, a);
  const HostBlock b = pool.allocate(kPage);
  EXPECT_NE(b.address, a.address);
  clock.finish(copy);
  EXPECT_EQ(pool.allocate(kPage).address, a.address);
  EXPECT_EQ(clock.live(), 0u);
  EXPECT_EQ(clock.waits, 0);
}

TEST_F(HostPoolTest, APendingBufferHoldsNobodyBack) {
  const HostBlock a = pool.allocate(kPage);
  const HostBlock b = pool.allocate(kPage);
  free_pending(pool, a);
  pool.free(b, {});
  EXPECT_EQ(pool.allocate(kPage).address, b.address);
}

TEST_F(HostPoolTest, EveryTokenMustBeDone) {
  const HostBlock a = pool.allocate(kPage);
  const std::array<PoolToken, 2> until = {clock.record(StreamId{0}), clock.record(StreamId{1})};
  pool.free(a, until);
  clock.finish(until[1]);
  EXPECT_NE(pool.allocate(kPage).address, a.address);
  clock.finish(until[0]);
  EXPECT_EQ(pool.allocate(kPage).address, a.address);
}

TEST_F(HostPoolTest, CountsInUseAndPinned) {
  const HostBlock a = pool.allocate(kPage);
  pool.allocate(2 * kPage);
  pool.free(a, {});
  EXPECT_EQ(pool.stats().in_use_bytes.current, 2 * kPage);
  EXPECT_EQ(pool.stats().in_use_bytes.peak, 3 * kPage);
  EXPECT_EQ(pool.stats().pinned_bytes.current, 3 * kPage);
  pool.reset_peaks();
  EXPECT_EQ(pool.stats().in_use_bytes.peak, 2 * kPage);
}

TEST_F(HostPoolTest, AtTheLimitItWaitsForABufferOfTheSize) {
  HostPool small{2 * kPage, clock};
  const HostBlock a = small.allocate(kPage);
  small.allocate(kPage);
  free_pending(small, a);
  EXPECT_EQ(small.allocate(kPage).address, a.address);
  EXPECT_EQ(clock.waits, 1);
}

TEST_F(HostPoolTest, AtTheLimitItUnpinsOtherSizes) {
  HostPool small{3 * kPage, clock};
  const HostBlock a = small.allocate(kPage);
  const HostBlock b = small.allocate(kPage);
  free_pending(small, a);
  small.free(b, {});
  small.allocate(3 * kPage);
  EXPECT_EQ(small.stats().pinned_bytes.current, 3 * kPage);
  EXPECT_EQ(clock.live(), 0u);
}

TEST_F(HostPoolTest, PastTheLimitItThrowsWithTheNumbersAndGoesOn) {
  HostPool small{2 * kPage, clock};
  small.allocate(kPage);
  try {
    small.allocate(2 * kPage);
    FAIL() << "it fits";
  } catch (const OutOfHostMemory& error) {
    EXPECT_EQ(error.requested_bytes, 2 * kPage);
    EXPECT_EQ(error.limit_bytes, 2 * kPage);
    EXPECT_EQ(error.in_use_bytes, kPage);
    EXPECT_EQ(error.pinned_bytes, kPage);
  }
  EXPECT_EQ(small.allocate(kPage).bytes, kPage);
}

TEST_F(HostPoolTest, TokensAreDroppedWithThePool) {
  {
    HostPool brief{0, clock};
    free_pending(brief, brief.allocate(1));
  }
  EXPECT_EQ(clock.live(), 0u);
  EXPECT_FALSE(clock.dropped_twice);
}

}  // namespace
}  // namespace ferry::sim
