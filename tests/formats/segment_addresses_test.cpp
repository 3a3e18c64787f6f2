#include "formats/segment_addresses.h"

#include <gtest/gtest.h>

#include <vector>

namespace ferry {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kTop = std::uint64_t{1} << 45;

struct SegmentAddressesTest : ::testing::Test {
  SegmentAddresses addresses{kTop / 2, kTop, AddressOrder::kDown};

  // How far below the top it begins, in MiB.
  std::uint64_t below(std::uint64_t mib) {
    return (kTop - addresses.take(mib * kMiB).value()) / kMiB;
  }
};

// The segments of a PyTorch memory snapshot of an H100, in the order of their making, and their
// distances from the top of the first one's piece. Somebody else had 64 MiB by the fifth.
TEST_F(SegmentAddressesTest, LieAsOnAnH100) {
  EXPECT_EQ(below(1908), 1920u);
  EXPECT_EQ(below(2), 12u);  // in the rest of the first one's piece, at its beginning
  EXPECT_EQ(below(192), 2112u);
  EXPECT_EQ(below(954), 3072u);
  below(64);
  EXPECT_EQ(below(32), 3168u);
  EXPECT_EQ(below(192), 3360u);
  EXPECT_EQ(below(954), 4320u);
}

// A listing of an RTX 3090's: what was taken of the first rest before, the driver knows.
TEST_F(SegmentAddressesTest, LieAsOnAnRtx3090) {
  EXPECT_EQ(below(20), 32u);
  below(4);
  EXPECT_EQ(below(2), 8u);
  EXPECT_EQ(below(512), 544u);
  EXPECT_EQ(below(1024), 1568u);
}

TEST_F(SegmentAddressesTest, ARestThatIsTooSmallIsPassedBy) {
  EXPECT_EQ(below(28), 32u);
  EXPECT_EQ(below(20), 64u);
  EXPECT_EQ(below(6), 44u);
  EXPECT_EQ(below(4), 4u);
}

TEST_F(SegmentAddressesTest, NoneAreLeft) {
  EXPECT_FALSE(addresses.take(kTop / 2 + 1));
  EXPECT_EQ(addresses.take(kTop / 2 - 32 * kMiB + 512), kTop / 2);
  EXPECT_EQ(addresses.left(), 0u);
  EXPECT_FALSE(addresses.take(32 * kMiB));
  EXPECT_EQ(addresses.take(2 * kMiB), kTop - 32 * kMiB + 512);
}

TEST(SegmentAddressesUp, FollowEachOther) {
  SegmentAddresses addresses(kTop / 2, kTop, AddressOrder::kUp);
  EXPECT_EQ(addresses.take(20 * kMiB), kTop / 2);
  EXPECT_EQ(addresses.take(2 * kMiB), kTop / 2 + 20 * kMiB);
  EXPECT_FALSE(addresses.take(kTop / 2));
  EXPECT_EQ(addresses.take(kTop / 2 - 22 * kMiB), kTop / 2 + 22 * kMiB);
  EXPECT_EQ(addresses.left(), 0u);
}

}  // namespace
}  // namespace ferry
