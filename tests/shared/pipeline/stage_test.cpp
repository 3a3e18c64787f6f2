// The parts that both pipelines share: which micro-batches run again, what is so unless it is told
// otherwise, and the state that a worker takes over.
#include "shared/pipeline/stage.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "shared/pipeline/workers.h"
#include "tests/sim/support/pipeline_rig.h"

namespace ferry {
namespace {

using sim::SimAutograd;

TEST(StageTest, TheModeSaysWhichMicroBatchesRunAgain) {
  EXPECT_EQ(checkpoint_stop(CheckpointMode::kAlways, 3), 3u);
  EXPECT_EQ(checkpoint_stop(CheckpointMode::kExceptLast, 3), 2u);
  EXPECT_EQ(checkpoint_stop(CheckpointMode::kExceptLast, 1), 0u);
  EXPECT_EQ(checkpoint_stop(CheckpointMode::kNever, 3), 0u);
}

TEST(StageTest, EachModeHasItsName) {
  EXPECT_EQ(name(CheckpointMode::kAlways), "always");
  EXPECT_EQ(name(CheckpointMode::kExceptLast), "except_last");
  EXPECT_EQ(name(CheckpointMode::kNever), "never");
}

TEST(StageTest, OfNoMicroBatchesNoneRunsAgain) {
  for (const CheckpointMode mode :
       {CheckpointMode::kAlways, CheckpointMode::kExceptLast, CheckpointMode::kNever}) {
    EXPECT_EQ(checkpoint_stop(mode, 0), 0u) << name(mode);
  }
}

TEST(StageTest, UnlessTheOptionsSayOtherwiseAllButTheLastRunAgainWithForwardsRandomNumbers) {
  const CorePipelineOptions options;
  EXPECT_EQ(options.checkpoint, CheckpointMode::kExceptLast);
  EXPECT_TRUE(options.preserve_rng_state);
  EXPECT_TRUE(options.checkpoints(0));
  EXPECT_TRUE(options.checkpoints(7));
}

TEST(StageTest, OptionsThatNameStagesNameEach) {
  CorePipelineOptions options;
  options.checkpointed_stages = {false, true};
  EXPECT_FALSE(options.checkpoints(0));
  EXPECT_TRUE(options.checkpoints(1));
  EXPECT_THROW(options.checkpoints(2), std::out_of_range);
}

TEST(StageTest, AStageAndATaskAreTheFirstDevicesUnlessToldOtherwise) {
  EXPECT_EQ(PipelineStage<SimAutograd>().device, 0u);
  EXPECT_EQ(WorkerTask().worker, 0u);
  EXPECT_TRUE(WorkerTask().after.empty());
}

// Each thread draws random numbers of its own.
TEST(StageTest, AWorkerTakesTheCallersStateOverButNotItsRandomNumbers) {
  test::PipelineRig rig(1);
  SimAutograd autograd = rig.autograd();
  std::optional<CallersState<SimAutograd>> callers;
  {
    const SimAutograd::GradModeScope no_grad(autograd, false);
    const SimAutograd::AmbientScope ambient(autograd, {{5, 7}, true});
    callers.emplace(autograd, Rules());
  }
  const SimAutograd::AmbientScope workers(autograd, {{9, 8}, true});
  {
    const CallersState<SimAutograd>::Scope scope(*callers);
    EXPECT_FALSE(autograd.grad_mode());
    EXPECT_EQ(autograd.ambient({}, true).state.ambient, 7u);
    EXPECT_EQ(autograd.ambient({}, true).state.random, 9u);
  }
  EXPECT_TRUE(autograd.grad_mode());
  EXPECT_EQ(autograd.ambient({}, true).state.ambient, 8u);
  EXPECT_FALSE(callers->grad_mode());
}

}  // namespace
}  // namespace ferry
