#include "formats/distinct.h"

#include <gtest/gtest.h>

#include <string>

namespace ferry {
namespace {

TEST(DistinctTest, CountsWhatDiffers) {
  Distinct seen;
  EXPECT_EQ(seen.count(), 0u);
  for (int again = 0; again < 2; ++again) {
    for (std::uint64_t i = 0; i < 1000; ++i) {
      seen.see(std::to_string(i));
      seen.see(Range{i, 1});
      seen.see(Range{1, i + 2});
    }
  }
  EXPECT_EQ(seen.count(), 3000u);
  EXPECT_TRUE(seen.is_exact());
}

TEST(DistinctTest, StopsWhereItsMemoryEnds) {
  Distinct seen;
  for (std::uint64_t i = 0; i < 2 * Distinct::kMost; ++i) seen.see(Range{i * 512, 512});
  EXPECT_EQ(seen.count(), Distinct::kMost);
  EXPECT_FALSE(seen.is_exact());
}

}  // namespace
}  // namespace ferry
