// The length of a list of candidates is bounded, so planning time does not grow with the square of
// the program's size.
#include "plan/candidates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/sim/support/segmented.h"
#include "tests/sim/support/tiny.h"

namespace ferry::plan {
namespace {

std::vector<std::ptrdiff_t> recomputed(int segments) {
  const std::vector<test::Part> parts(static_cast<std::size_t>(segments));
  const Survey found = survey(test::segmented(parts), test::tiny_hardware());
  std::vector<std::ptrdiff_t> counts;
  for (const Candidate& each : recompute_candidates(found)) {
    counts.push_back(std::count(each.mix.recompute.begin(), each.mix.recompute.end(), true));
  }
  return counts;
}

TEST(CandidatesTest, OfFewSegmentsEachNumberIsTried) {
  const std::vector<std::ptrdiff_t> counts = recomputed(100);
  ASSERT_EQ(counts.size(), 101u);
  for (std::size_t i = 0; i < counts.size(); ++i)
    EXPECT_EQ(counts[i], static_cast<std::ptrdiff_t>(i));
}

TEST(CandidatesTest, OfManyNotEachNumberIs) {
  const std::vector<std::ptrdiff_t> counts = recomputed(500);
  EXPECT_EQ(counts.size(), 129u);
  EXPECT_TRUE(std::is_sorted(counts.begin(), counts.end()));
  EXPECT_EQ(counts.front(), 0);
  EXPECT_EQ(counts.back(), 500);
}

}  // namespace
}  // namespace ferry::plan
