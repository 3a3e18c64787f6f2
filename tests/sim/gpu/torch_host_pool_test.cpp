#include "sim/gpu/torch_host_pool.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "formats/error.h"
#include "tests/sim/gpu/pool_clock.h"
#include "tests/sim/support/sizes.h"

namespace ferry::sim {
namespace {

using test::kMiB;

struct TorchHostPoolTest : ::testing::Test {
  PoolClock clock;
  TorchHostPool pool{0, clock};
  PoolToken free_under_a_copy(const HostBlock& block, std::uint32_t stream) {
    const std::array<PoolToken, 1> until = {clock.record(StreamId{stream})};
    pool.free(block, until);
    return until[0];
  }
};

TEST_F(TorchHostPoolTest, RoundsUpToPowersOfTwoHoweverSmall) {
  EXPECT_EQ(pool.allocate(1).bytes, 1);
  EXPECT_EQ(pool.allocate(3).bytes, 4);
  EXPECT_EQ(pool.allocate(100 * 1000 * 1000).bytes, 128 * kMiB);
  EXPECT_EQ(pool.stats().pinned_bytes.current, 128 * kMiB + 5);
}

TEST_F(TorchHostPoolTest, OfEqualSizesWhatCameBackLastGoesFirst) {
  const HostBlock a = pool.allocate(kMiB);
  const HostBlock b = pool.allocate(kMiB - 5);
  pool.free(a, {});
  pool.free(b, {});
  EXPECT_NE(pool.allocate(2 * kMiB).address, b.address);
  EXPECT_EQ(pool.allocate(kMiB).address, b.address);
  EXPECT_EQ(pool.allocate(kMiB).address, a.address);
}

TEST_F(TorchHostPoolTest, ASlowCopyHoldsBackWhatIsBehindIt) {
  const HostBlock a = pool.allocate(kMiB);
  const HostBlock b = pool.allocate(kMiB);
  const PoolToken slow = free_under_a_copy(a, 0);
  clock.finish(free_under_a_copy(b, 1));
  const HostBlock c = pool.allocate(kMiB);
  EXPECT_NE(c.address, a.address);
  EXPECT_NE(c.address, b.address);
  clock.finish(slow);
  EXPECT_EQ(pool.allocate(kMiB).address, b.address);
  EXPECT_EQ(clock.live(), 0u);
}

TEST_F(TorchHostPoolTest, ABufferWaitsForAllItsCopies) {
  const HostBlock a = pool.allocate(kMiB);
  const std::array<PoolToken, 2> until = {clock.record(StreamId{0}), clock.record(StreamId{1})};
  pool.free(a, until);
  clock.finish(until[0]);
  const HostBlock b = pool.allocate(kMiB);
  EXPECT_NE(b.address, a.address);
  clock.finish(until[1]);
  EXPECT_EQ(pool.allocate(kMiB).address, a.address);
}

TEST_F(TorchHostPoolTest, AtTheLimitItFailsWhateverIsCached) {
  TorchHostPool small(4 * kMiB, clock);
  small.free(small.allocate(2 * kMiB), {});
  small.allocate(kMiB);
  EXPECT_THROW(small.allocate(3 * kMiB), OutOfHostMemory);
  EXPECT_EQ(small.stats().num_ooms, 1);
  EXPECT_EQ(small.allocate(2 * kMiB).bytes, 2 * kMiB);
}

}  // namespace
}  // namespace ferry::sim
