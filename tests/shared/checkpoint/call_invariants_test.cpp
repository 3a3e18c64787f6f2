// Each assertion of checkpoints is seen to fail: calls, frames, reentrant regions, and the results
// of a recompute.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/shared/checkpoint/frames.h"

namespace ferry {
namespace {

using test::FrameAutograd;
using test::FrameDevice;

class CallInvariants : public test::FrameTest {
 protected:
  using State = CheckpointState<FrameDevice, FrameAutograd>;
  using Frame = CheckpointFrame<FrameDevice, FrameAutograd>;
  using Region = ReentrantRegion<FrameDevice, FrameAutograd>;
  using Runs = RecomputeRuns<FrameDevice>;
  using Run = RecomputeRun<FrameDevice>;

  FrameDevice device() { return {world.device(), calls}; }
  std::shared_ptr<State> state() { return std::make_shared<State>(device(), autograd(), Rules()); }
  std::shared_ptr<Frame> frame() {
    return std::make_shared<Frame>(
        state(), std::vector<Tensor>(), [](const auto&) {}, CoreCheckpointOptions(),
        CheckpointContexts(), nullptr);
  }
  Run::Result result() {
    return {KeptTensor<FrameDevice>(device(), world.make(kBytes)), world.stream(0)};
  }
};

TEST_F(CallInvariants, ACallRunsForwardOnceAndThenAgain) {
  const auto segment = frame();
  EXPECT_DEATH(segment->forward_hooks()->pack(world.make(kBytes))->unpack(),
               "a checkpointed call runs again after it began");
  segment->begin({});
  EXPECT_DEATH(segment->begin({}), "a checkpointed call begins once");
  segment->complete({});
  EXPECT_DEATH(segment->complete({}), "a segment's forward ends once");
}

TEST_F(CallInvariants, SoDoesAReentrantRegion) {
  Region region(
      state(), {}, {}, [](const auto&) { return std::vector<Tensor>(); }, nullptr);
  EXPECT_DEATH(region.recompute({}), "a reentrant region runs again after its forward");
  region.forward({});
  EXPECT_DEATH(region.forward({}), "a reentrant region runs forward once");
}

TEST_F(CallInvariants, ARecomputeMakesEachResultOnce) {
  Run run(1);
  run.put(0, result());
  EXPECT_DEATH(run.put(0, result()), "a recompute makes each result once");
  EXPECT_DEATH(run.put(1, result()), "a result has the ordinal of a saved tensor");
  EXPECT_DEATH(run.take(1), "a recompute knows each tensor that is unpacked");
}

TEST_F(CallInvariants, ATaskHasOneRecomputeThatOnlyGrows) {
  Runs runs;
  Runs::Dropped dropped;
  const RecomputeKey key{RecomputeKey::Kind::kTask, 1, {}};
  runs.add(key, std::make_shared<Run>(2));
  EXPECT_DEATH(runs.add(key, std::make_shared<Run>(2)), "one recompute serves a task on a thread");
  EXPECT_DEATH(runs.replace(key, std::make_shared<Run>(1), dropped),
               "a later recompute makes no fewer tensors");
}

}  // namespace
}  // namespace ferry
