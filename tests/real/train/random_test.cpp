#include "real/train/random.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <vector>

namespace ferry::real::train {
namespace {

TEST(RandomTest, TheNumbersAreThese) {
  // Written down once: another compiler, or a change, must not move them.
  Random random(7, 3);
  std::vector<std::int64_t> numbers;
  for (int i = 0; i < 6; ++i) numbers.push_back(random.below(1000));
  EXPECT_EQ(numbers, (std::vector<std::int64_t>{513, 130, 485, 645, 880, 770}));
  EXPECT_NE(Random(7, 3).next(), Random(7, 4).next());
  EXPECT_NE(Random(7, 3).next(), Random(8, 3).next());
}

TEST(RandomTest, AllOfTheRangeComes) {
  Random random(1);
  std::set<std::int64_t> seen;
  for (int i = 0; i < 200; ++i) seen.insert(random.between(-2, 3));
  EXPECT_EQ(seen, (std::set<std::int64_t>{-2, -1, 0, 1, 2, 3}));
}

}  // namespace
}  // namespace ferry::real::train
