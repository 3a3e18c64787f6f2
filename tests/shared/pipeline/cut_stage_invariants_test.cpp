// Each assertion of a stage's parts is seen to fail: its two runs, and the bytes that it is given.
#include "shared/pipeline/cut_stage.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "shared/pipeline/shared_bytes.h"
#include "tests/shared/pipeline/cut_stages.h"

namespace ferry {
namespace {

class NoHooks final : public Hooks<sim::Tensor> {
 public:
  std::unique_ptr<Saved<sim::Tensor>> pack(const sim::Tensor&) override { return nullptr; }
};

using CutStageInvariants = test::CutStageTest;

TEST_F(CutStageInvariants, AStageRunsForwardOnceAndThenAgain) {
  Stage again = stage([](Values x) { return x; }, {rig_.leaf()});
  EXPECT_DEATH(again.recompute(), "a stage runs again after its checkpointed forward");
  again.forward_checkpointed(false);
  EXPECT_DEATH(again.forward_checkpointed(false), "a checkpointed stage runs forward once");
  again.put_away(std::make_shared<NoHooks>());
  EXPECT_DEATH(again.put_away(std::make_shared<NoHooks>()), "a stage's inputs are put away once");
}

TEST_F(CutStageInvariants, AMicroBatchArrivesAsItLeft) {
  using Given = Crossings<std::optional<sim::Tensor>>;
  const sim::SimDevice device(rig_.machine(), 0);
  SharedBytes<sim::SimDevice> bytes(std::make_shared<const SkipLayout>(), PipelineRules(Rules()));
  const Given one{{rig_.fresh()}, {}};
  EXPECT_DEATH(bytes.enter(device, Given{{}, {{3, rig_.fresh()}}}),
               "a skip tensor that arrives has left its stage");
  bytes.enter(device, one);
  EXPECT_DEATH(bytes.enter(device, one), "a micro-batch is in one stage at a time");
  bytes.leave(device, one, 0, false);
  EXPECT_DEATH(bytes.enter(device, Given{{rig_.fresh(), rig_.fresh()}, {}}),
               "a stage is given the values that the one before it made");
}

}  // namespace
}  // namespace ferry
