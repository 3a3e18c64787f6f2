#include "sim/run/training/permille.h"

#include <gtest/gtest.h>

namespace ferry::sim {
namespace {

TEST(PermilleTest, Rounds) {
  EXPECT_EQ(permille(2, 3, Round::kDown), 666);
  EXPECT_EQ(permille(2, 3, Round::kNearest), 667);
  EXPECT_EQ(permille(1, 3, Round::kNearest), 333);
  EXPECT_EQ(permille(1, 2000, Round::kNearest), 1);
  EXPECT_EQ(permille(1, 3, Round::kUp), 334);
  EXPECT_EQ(permille(3, 3, Round::kUp), 1000);
  EXPECT_EQ(permille(0, 3, Round::kUp), 0);
}

// A step of 2^55 ns was 0.-22 of keep's.
TEST(PermilleTest, IsRightForEveryTime) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(permille(WideTime{1} << 55, WideTime{1} << 56, Round::kUp), 500);
  EXPECT_EQ(permille(WideTime{kMost} * 64, WideTime{kMost} * 64, Round::kNearest), 1000);
  EXPECT_EQ(permille(kMost, 1, Round::kDown), kMost);
}

}  // namespace
}  // namespace ferry::sim
