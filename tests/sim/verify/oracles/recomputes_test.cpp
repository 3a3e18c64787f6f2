#include "sim/verify/oracles/recomputes.h"

#include <gtest/gtest.h>

#include "sim/verify/programs/random_program.h"

namespace ferry::verify {
namespace {

// One layer saves two tensors, its input and its weight, and the program's first op one: in the
// whole forward's segment the plan keeps one and passes one on.
RecomputeCounts counts_of_one_layer(const SegmentPlan* plan) {
  Recipe recipe;
  recipe.segments = recipe.whole = true;
  recipe.layers.resize(1);
  return expected_counts(make_program(recipe), plan);
}

TEST(Recomputes, PacksAreCountedByWhatIsChosenForThem) {
  const RecomputeCounts all = counts_of_one_layer(nullptr);
  ASSERT_TRUE(all.packs_known);
  EXPECT_GE(all.saved, 2);
  EXPECT_EQ(all.kept + all.passed_on, 0);
  SegmentPlan plan = SegmentPlan::closed();
  plan.segments.emplace_back().choices = {SavedChoice::kKeep, SavedChoice::kOffload};
  const RecomputeCounts planned = counts_of_one_layer(&plan);
  EXPECT_EQ(planned.kept, 1);
  EXPECT_EQ(planned.passed_on, 1);
  EXPECT_EQ(planned.saved, all.saved - 2);
}

TEST(Recomputes, OneThatIsCountedOtherwiseIsNamed) {
  RecomputeCounts expected;
  expected.saved = 3;
  expected.kept = 2;
  expected.passed_on = 1;
  CheckpointStatistics counted;
  counted.saved = 3;
  counted.kept = 2;
  counted.passed_on = 1;
  EXPECT_EQ(miscounted(expected, counted), "");
  for (const auto member : {&CheckpointStatistics::saved, &CheckpointStatistics::kept,
                            &CheckpointStatistics::passed_on, &CheckpointStatistics::segments,
                            &CheckpointStatistics::recomputes, &CheckpointStatistics::alive}) {
    CheckpointStatistics other = counted;
    ++(other.*member);
    EXPECT_NE(miscounted(expected, other), "");
  }
}

}  // namespace
}  // namespace ferry::verify
