// The bytes of a storage: which extents lie within which.
#include "shared/seam/device.h"

#include <gtest/gtest.h>

#include <cstdint>

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

TEST(Extent, CoversAnotherWhoseEveryByteIsItsOwn) {
  constexpr std::int64_t kBytes = 4;
  for (std::int64_t code = 0; code < kBytes * kBytes * kBytes * kBytes; ++code) {
    const Extent a{code % kBytes, code / 4 % kBytes}, b{code / 16 % kBytes, code / 64};
    if (a.begin > a.end || b.begin >= b.end) continue;
    bool covers = true;
    for (std::int64_t byte = b.begin; byte < b.end; ++byte) {
      covers = covers && a.begin <= byte && byte < a.end;
    }
    EXPECT_EQ(a.covers(b), covers) << code;
  }
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
