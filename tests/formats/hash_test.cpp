#include "formats/hash.h"

#include <gtest/gtest.h>

namespace ferry {
namespace {

TEST(HashTest, ATextsHashIsThePublishedOne) {
  EXPECT_EQ(fnv1a(""), 0xcbf29ce484222325u);
  EXPECT_EQ(fnv1a("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(fnv1a("foobar"), 0x85944171f73967e8u);
  EXPECT_NE(fnv1a("\xff"), fnv1a("\x7f")) << "bytes have no sign";
}

TEST(HashTest, SplitMixesFirstNumbersAreThePublishedOnes) {
  constexpr std::uint64_t kStride = 0x9e3779b97f4a7c15u;
  EXPECT_EQ(spread_bits(kStride), 0xe220a8397b1dcdafu) << "of the seed 0";
  EXPECT_EQ(spread_bits(2 * kStride), 0x6e789e6aa1b965f4u);
  EXPECT_EQ(spread_bits(0), 0u);
}

}  // namespace
}  // namespace ferry
