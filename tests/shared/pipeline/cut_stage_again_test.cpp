// A stage whose graph is cut, and which runs again: the state that each run sees, and what becomes
// of its inputs until then.
#include <gtest/gtest.h>

#include <optional>

#include "shared/pipeline/cut_stage.h"
#include "tests/shared/pipeline/cut_stages.h"

namespace ferry::test {
namespace {

using Flags = std::vector<bool>;

// Hands tensors back as they were, and says how many it has.
class Kept final : public Hooks<sim::Tensor> {
 public:
  std::unique_ptr<Saved<sim::Tensor>> pack(const sim::Tensor& tensor) override {
    return std::make_unique<One>(tensor, held_);
  }
  std::int64_t held() const { return held_.use_count() - 1; }

 private:
  struct One final : Saved<sim::Tensor> {
    One(sim::Tensor saved, std::shared_ptr<int> holds)
        : tensor(std::move(saved)), held(std::move(holds)) {}
    sim::Tensor unpack() override { return tensor; }
    sim::Tensor tensor;
    std::shared_ptr<int> held;
  };
  const std::shared_ptr<int> held_ = std::make_shared<int>(0);
};

// And the rest of the caller's context is as it was.
TEST_F(CutStageTest, TheFunctionIsToldWhichOfItsRunsItIs) {
  std::vector<CheckpointContext> seen;
  Stage stage = this->stage(
      [&](Values in) {
        seen.push_back(checkpoint_context(autograd_.hooks()));
        return Values{rig_.op(in)};
      },
      {rig_.leaf()});
  CheckpointContext callers;
  callers.early_stop = false;
  const CheckpointContextGuard<sim::SimAutograd> guard(rig_.autograd(), callers);
  stage.forward_checkpointed(true);
  stage.recompute();
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_TRUE(seen[0].checkpointing);
  EXPECT_FALSE(seen[0].recomputing);
  EXPECT_FALSE(seen[1].checkpointing);
  EXPECT_TRUE(seen[1].recomputing);
  for (const CheckpointContext& context : seen) EXPECT_EQ(context.early_stop, false);
}

TEST_F(CutStageTest, AStageThatDoesNotRunAgainIsToldNothing) {
  std::optional<CheckpointContext> seen;
  Stage stage = this->stage(
      [&](Values in) {
        seen = checkpoint_context(autograd_.hooks());
        return in;
      },
      {rig_.leaf()});
  stage.forward();
  ASSERT_TRUE(seen);
  EXPECT_FALSE(seen->checkpointing);
  EXPECT_FALSE(seen->recomputing);
}

// Within a function that runs again for itself.
TEST_F(CutStageTest, WhatRunsInARecomputeRecomputesInBothItsRuns) {
  std::vector<bool> seen;
  Stage stage = this->stage(
      [&](Values in) {
        seen.push_back(checkpoint_context(autograd_.hooks()).recomputing);
        return in;
      },
      {rig_.leaf()});
  CheckpointContext callers;
  callers.recomputing = true;
  const CheckpointContextGuard<sim::SimAutograd> guard(rig_.autograd(), callers);
  stage.forward_checkpointed(true);
  stage.recompute();
  EXPECT_EQ(seen, (Flags{true, true}));
}

TEST_F(CutStageTest, TheSecondRunSeesTheAmbientStateAndTheRandomNumbersOfTheFirst) {
  for (const bool random : {true, false}) {
    std::vector<sim::AmbientState> seen;
    Stage stage = this->stage(
        [&](Values in) {
          seen.push_back(autograd_.ambient({}, true).state);
          return Values{rig_.op(in)};
        },
        {rig_.leaf()});
    {
      const sim::SimAutograd::AmbientScope scope(rig_.autograd(), {{5, 7}, true});
      stage.forward_checkpointed(random);
    }
    const sim::SimAutograd::AmbientScope scope(rig_.autograd(), {{6, 8}, true});
    stage.recompute();
    ASSERT_EQ(seen.size(), 2u);
    EXPECT_EQ(seen[0].random, 5u);
    EXPECT_EQ(seen[1].random, random ? 5u : 6u);
    EXPECT_EQ(seen[0].ambient, 7u);
    EXPECT_EQ(seen[1].ambient, 7u);
    EXPECT_EQ(autograd_.ambient({}, true).state.random, 6u);
  }
}

TEST_F(CutStageTest, InputsThatWerePutAwayComeBackAsTheyWere) {
  std::vector<Values> seen;
  Stage stage = this->stage(
      [&](Values in) {
        seen.push_back(in);
        return Values{rig_.op({in[0], in[1]})};
      },
      {constant(), rig_.leaf(), Value()});
  stage.forward_checkpointed(true);
  stage.put_away(std::make_shared<Kept>());
  stage.recompute();
  ASSERT_EQ(seen.size(), 2u);
  for (const Values& in : seen) {
    EXPECT_EQ(require_grad(in), (Flags{false, true, false}));
    EXPECT_EQ(exist(in), (Flags{true, true, false}));
  }
  stage.backward(gradients(1));
  EXPECT_EQ(exist(stage.gradients().values), (Flags{false, true, false}));
}

// Hooks keep a leaf's bytes on the device, since autograd accumulates in it.
TEST_F(CutStageTest, InputsArePutAwayWithoutTheirGraph) {
  const auto hooks = std::make_shared<Kept>();
  Stage stage = this->stage(
      [&](Values in) {
        return Values{rig_.op({in[0], in[1]})};
      },
      {rig_.leaf(), constant(), Value()});
  stage.forward_checkpointed(true);
  EXPECT_TRUE(asked().saves.empty());
  stage.put_away(hooks);
  EXPECT_EQ(asked().saves, (Flags{false, false}));
  EXPECT_EQ(hooks->held(), 2);
}

TEST_F(CutStageTest, WhatWasPutAwayGoesWhenTheStageRunsAgain) {
  const auto hooks = std::make_shared<Kept>();
  std::int64_t held = -1;
  Stage stage = this->stage(
      [&](Values in) {
        held = hooks->held();
        return Values{rig_.op(in)};
      },
      {rig_.leaf()});
  stage.forward_checkpointed(true);
  stage.put_away(hooks);
  EXPECT_EQ(hooks->held(), 1);
  stage.recompute();
  EXPECT_EQ(held, 0);
  EXPECT_EQ(hooks->held(), 0);
}

}  // namespace
}  // namespace ferry::test
