// The bytes of a storage: which extents lie within which.
#include "shared/seam/device.h"

#include <gtest/gtest.h>

namespace ferry {
namespace {

TEST(Extent, CoversWhatLiesWithinIt) {
  const Extent extent{8, 24};
  EXPECT_EQ(extent.bytes(), 16);
  EXPECT_TRUE(extent.covers(extent));
  EXPECT_TRUE(extent.covers({8, 16}));
  EXPECT_TRUE(extent.covers({16, 24}));
  EXPECT_FALSE(extent.covers({0, 24})) << "it begins before";
  EXPECT_FALSE(extent.covers({0, 16}));
  EXPECT_FALSE(extent.covers({8, 32})) << "it ends after";
}

TEST(Extent, HasNoBytesUnlessItSaysSo) {
  EXPECT_EQ(Extent(), (Extent{0, 0}));
  EXPECT_EQ(Extent().bytes(), 0);
}

TEST(HostUsage, IsNothingUnlessItSaysSo) {
  EXPECT_EQ(HostUsage().used_bytes, 0);
  EXPECT_EQ(HostUsage().total_bytes, 0);
}

}  // namespace
}  // namespace ferry
