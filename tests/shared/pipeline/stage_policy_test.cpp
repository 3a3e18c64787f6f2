// The policies of stages: their names, and what each asks for.
#include "shared/pipeline/stage_policy.h"

#include <gtest/gtest.h>

namespace ferry {
namespace {

TEST(StagePolicyTest, EachHasAName) {
  EXPECT_EQ(name(StagePolicy::kKeep), "keep");
  EXPECT_EQ(name(StagePolicy::kOffload), "offload");
  EXPECT_EQ(name(StagePolicy::kCheckpoint), "checkpoint");
  EXPECT_EQ(name(StagePolicy::kCheckpointOffload), "checkpoint+offload");
}

TEST(StagePolicyTest, ItsNameSaysWhetherAStageRunsAgainAndWhetherItOffloads) {
  for (const StagePolicy policy : {StagePolicy::kKeep, StagePolicy::kOffload,
                                   StagePolicy::kCheckpoint, StagePolicy::kCheckpointOffload}) {
    EXPECT_EQ(runs_again(policy), name(policy).find("checkpoint") != std::string_view::npos);
    EXPECT_EQ(offloads(policy), name(policy).find("offload") != std::string_view::npos);
  }
}

}  // namespace
}  // namespace ferry
