#include "verify/oracles/recomputes.h"

#include <gtest/gtest.h>

#include "verify/programs/random_program.h"

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

// Nothing before the first layer that is trained makes a node.
TEST(Recomputes, WhatHasNoGraphSavesNothing) {
  Recipe recipe;
  recipe.segments = recipe.whole = true;
  recipe.layers.resize(3);
  const auto saved = [&recipe] {
    const RecomputeCounts counts = expected_counts(make_program(recipe), nullptr);
    EXPECT_TRUE(counts.packs_known);
    return counts.saved;
  };
  const std::int64_t all = saved();
  recipe.layers[0].frozen = true;
  EXPECT_EQ(saved(), all) << "its input has a gradient";
  recipe.embeds = false;
  EXPECT_EQ(saved(), all - 1 - 2) << "neither the embedding nor the layer saves";
  recipe.layers[1].frozen = true;
  EXPECT_EQ(saved(), all - 1 - 2 - 2);
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
