// The edges of schedules: counts of zero, actions out of order, and what stands for nothing.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "shared/pipeline/schedule.h"

namespace ferry {
namespace {

TEST(ScheduleEdges, AnEmptyScheduleHasNoStagesNoMicroBatchesAndNoOrder) {
  const Schedule none;
  EXPECT_EQ(none.stages, 0u);
  EXPECT_EQ(none.microbatches, 0u);
  EXPECT_TRUE(in_order(none).empty());
}

TEST(ScheduleEdges, TheFirstActionIsAForwardOfTheFirstStage) {
  EXPECT_EQ(PipelineAction(), (PipelineAction{true, 0, 0}));
  EXPECT_EQ(PlacedAction().device, 0u);
  EXPECT_EQ(make_schedule(ScheduleKind::kGpipe, 2, 1, 1).devices[0].front(), PipelineAction());
}

TEST(ScheduleEdges, ADeviceWithoutActionsHoldsNothing) { EXPECT_EQ(alive_max({}), 0u); }

TEST(ScheduleEdges, EachCountIsAtLeastOne) {
  for (const ScheduleKind kind :
       {ScheduleKind::kGpipe, ScheduleKind::kOneForwardOneBackward, ScheduleKind::kInterleaved}) {
    const auto refusal = [kind](std::size_t devices, std::size_t each, std::size_t microbatches) {
      try {
        make_schedule(kind, devices, each, microbatches);
      } catch (const std::invalid_argument& error) {
        return std::string(error.what());
      }
      return std::string("none");
    };
    const std::string expected =
        std::string(name(kind)) + ": expected at least one device, one stage and one micro-batch";
    EXPECT_EQ(refusal(0, 1, 2), expected);
    EXPECT_EQ(refusal(2, 0, 2), expected);
    EXPECT_EQ(refusal(2, 1, 0), expected);
    EXPECT_EQ(refusal(2, 1, 2), "none");
  }
}

TEST(ScheduleEdges, AStageGoesBackwardAfterItsOwnForward) {
  const Schedule wrong{1, 1, {{{false, 0, 0}, {true, 0, 0}}}};
  try {
    in_order(wrong);
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "no device can go on: each waits for another one");
  }
}

TEST(ScheduleEdges, TheBubbleIsRoundedToTheNearestThousandth) {
  const ScheduleKind gpipe = ScheduleKind::kGpipe;
  EXPECT_EQ(bubble_permille(gpipe, 1, 1, 4), 0);
  EXPECT_EQ(bubble_permille(gpipe, 2, 1, 2), 333);                       // 1 / 3
  EXPECT_EQ(bubble_permille(gpipe, 3, 1, 1), 667);                       // 2 / 3
  EXPECT_EQ(bubble_permille(gpipe, 2, 1, 15), 63);                       // 1 / 16, of 62.5
  EXPECT_EQ(bubble_permille(ScheduleKind::kInterleaved, 2, 2, 2), 200);  // 1 / 5
}

// Only the interleaved schedule has several stages on a device.
TEST(ScheduleEdges, OnlyTheInterleavedBubbleIsSmallerWithMoreStages) {
  for (const ScheduleKind kind : {ScheduleKind::kGpipe, ScheduleKind::kOneForwardOneBackward}) {
    EXPECT_EQ(bubble_permille(kind, 4, 3, 8), bubble_permille(kind, 4, 1, 8));
  }
  const ScheduleKind interleaved = ScheduleKind::kInterleaved;
  EXPECT_LT(bubble_permille(interleaved, 4, 3, 8), bubble_permille(interleaved, 4, 1, 8));
}

}  // namespace
}  // namespace ferry
