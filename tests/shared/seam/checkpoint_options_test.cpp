// The defaults of checkpoints: options are torch.utils.checkpoint's, and a plan lists nothing.
#include "shared/seam/checkpoint_options.h"

#include <gtest/gtest.h>

namespace ferry {
namespace {

TEST(SegmentPlan, ByDefaultItIsACheckpointAndSoAreTheCallsInside) {
  const SegmentPlan plan;
  EXPECT_TRUE(plan.checkpoint);
  EXPECT_TRUE(plan.unlisted);
  EXPECT_TRUE(plan.choices.empty());
  EXPECT_TRUE(plan.segments.empty());
  EXPECT_FALSE(plan.packs);
}

TEST(SegmentPlan, AClosedOneHasNoCheckpointsThatItDoesNotList) {
  EXPECT_TRUE(SegmentPlan::closed().checkpoint);
  EXPECT_FALSE(SegmentPlan::closed(false).checkpoint);
  for (const bool checkpoint : {false, true}) {
    EXPECT_FALSE(SegmentPlan::closed(checkpoint).unlisted);
    EXPECT_TRUE(SegmentPlan::closed(checkpoint).segments.empty());
  }
}

TEST(CheckpointOptions, HaveTheDefaultsOfTorchUtilsCheckpoint) {
  const CoreCheckpointOptions options;
  EXPECT_TRUE(options.early_stop);
  EXPECT_TRUE(options.preserve_rng_state);
  EXPECT_EQ(options.determinism_check, DeterminismCheck::kDefault);
  EXPECT_FALSE(options.debug);
  EXPECT_FALSE(options.context_fn);
  EXPECT_TRUE(options.choices.empty());
}

TEST(CheckpointStatistics, StartAtNothing) {
  const CheckpointStatistics none;
  for (const auto count : {&CheckpointStatistics::segments, &CheckpointStatistics::recomputes,
                           &CheckpointStatistics::stopped_early, &CheckpointStatistics::saved,
                           &CheckpointStatistics::kept, &CheckpointStatistics::passed_on,
                           &CheckpointStatistics::alive}) {
    EXPECT_EQ(none.*count, 0);
  }
}

}  // namespace
}  // namespace ferry
