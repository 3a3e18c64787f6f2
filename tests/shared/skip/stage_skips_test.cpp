// A stage's tracker: what a stage needs that stashes or pops nothing, what it pops where none was
// stashed, and what one finds that runs again.
#include "shared/skip/stage_skips.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "tests/shared/skip/strict_portals.h"

namespace ferry {
namespace {

class StageSkipsTest : public test::StrictPortals {
 protected:
  using Skips = StageSkips<sim::SimDevice, test::StrictAutograd>;
  using Popped = PoppedTensors<sim::SimDevice>;
  using Values = std::vector<Value>;

  // `x` and `y` go from stage 0 to stage 1.
  Skips::Of of(std::size_t stage, std::shared_ptr<Popped> popped = nullptr) {
    return {autograd(), layout_, portals_, stage, std::move(popped), Rules()};
  }
  // `x` goes from stage 0 to stage 3, and `y` from there to stage 2.
  Skips::Of past(std::size_t stage) {
    Skips::Of past = of(stage);
    past.layout =
        std::make_shared<const SkipLayout>(std::vector<SkipRoute>{{{"x"}, 0, 3}, {{"y"}, 0, 2}});
    return past;
  }
  // As stage 0 does.
  void stash(const Value& x, const Value& y) {
    Skips skips(of(0), false);
    skips.save({"x"}, x);
    skips.save({"y"}, y);
    Values values = {rig_.leaf()};
    skips.close(values);
  }
  // Of a micro-batch that no order can go with.
  Values integers() { return {without_gradient(DType::kI64)}; }

  const std::shared_ptr<const SkipLayout> layout_ =
      std::make_shared<const SkipLayout>(std::vector<SkipRoute>{{{"x"}, 0, 1}, {{"y"}, 0, 1}});
  const std::shared_ptr<Portals<sim::SimDevice, test::StrictAutograd>> portals_ =
      std::make_shared<Portals<sim::SimDevice, test::StrictAutograd>>(
          Portals<sim::SimDevice, test::StrictAutograd>{{0, portal()}, {1, portal()}});
};

TEST_F(StageSkipsTest, AStageThatPopsNothingLeavesItsInputsAsTheyAre) {
  Skips skips(of(0), false);
  Values values = integers();
  EXPECT_NO_THROW(skips.open(values)) << "it needs no value that can have a gradient";
  const Value before = rig_.leaf();
  values = {before};
  skips.open(values);
  EXPECT_EQ(values[0].edge.node, before.edge.node);
  EXPECT_EQ(asked_->nodes, 0);
}

TEST_F(StageSkipsTest, AStageThatPopsForksItsInputs) {
  Skips skips(of(1), false);
  Values values = integers();
  EXPECT_THROW(skips.open(values), ValueError);
  const Value before = rig_.leaf();
  values = {before};
  skips.open(values);
  EXPECT_NE(values[0].edge.node, before.edge.node);
}

TEST_F(StageSkipsTest, AStageThatStashedNothingLeavesItsOutputsAsTheyAre) {
  Skips skips(of(0), false);
  Values values = integers();
  EXPECT_NO_THROW(skips.close(values));
  EXPECT_EQ(asked_->nodes, 0);
}

TEST_F(StageSkipsTest, AStashWithoutAGradientNeedsNoOutputToCarryOne) {
  Skips skips(of(0), false);
  skips.save({"x"}, without_gradient());
  skips.save({"y"}, Value());
  Values values = integers();
  EXPECT_NO_THROW(skips.close(values));
}

TEST_F(StageSkipsTest, AStashWithAGradientJoinsTheOutputs) {
  Skips skips(of(0), false);
  skips.save({"x"}, rig_.leaf());
  Values values = integers();
  EXPECT_THROW(skips.close(values), ValueError);
  const Value before = rig_.leaf();
  values = {before};
  skips.close(values);
  EXPECT_NE(values[0].edge.node, before.edge.node);
}

// An activation may be applied to it in place until then.
TEST_F(StageSkipsTest, WhatIsStashedLeavesWithTheStage) {
  Skips skips(of(0), false);
  const Value kept = rig_.leaf();
  skips.save({"x"}, kept);
  EXPECT_TRUE(portals_->at(0)->empty());
  Values values = {rig_.leaf()};
  skips.close(values);
  EXPECT_EQ((*portals_->at(0)->tensor())->storage, kept.tensor->storage);
  EXPECT_EQ(kept.tensor.use_count(), 2) << "the tracker lets go of it";
}

TEST_F(StageSkipsTest, NoneIsPoppedWhereNoneWasStashed) {
  const Value kept = rig_.leaf();
  stash(kept, Value());
  const auto popped = std::make_shared<Popped>();
  for (const bool again : {false, true}) {
    Skips skips(of(1, popped), again);
    EXPECT_EQ(skips.load({"x"}).tensor->storage, kept.tensor->storage);
    EXPECT_FALSE(skips.load({"y"}).tensor);
  }
}

TEST_F(StageSkipsTest, AStageThatOwnsNothingPopsOnceAlone) {
  stash(rig_.leaf(), Value());
  EXPECT_TRUE(Skips(of(1), false).load({"x"}).tensor);
  EXPECT_THROW(Skips(of(1), true).load({"x"}), SkipError) << "the portal gave it up";
}

// Its function may cut the graph between its values, and what goes past it has a gradient yet.
TEST_F(StageSkipsTest, TheWayOfWhatGoesPastAStageGoesAroundItsFunction) {
  Skips skips(past(1), false);
  const Value before = rig_.leaf();
  Values values = {before};
  skips.open(values);
  EXPECT_NE(values[0].edge.node, before.edge.node);
  const sim::Edge forked = values[0].edge;
  values = {without_gradient()};
  skips.close(values);
  ASSERT_TRUE(requires_grad(values[0]));
  const std::vector<sim::Edge>& joined = values[0].edge.node->next;
  ASSERT_EQ(joined.size(), 2u);
  EXPECT_EQ(joined[1].node, forked.node) << "the other output of the same fork";
}

TEST_F(StageSkipsTest, AStageThatPopsMayHaveOthersGoPastIt) {
  Skips skips(past(2), false);
  Values values = {rig_.leaf()};
  skips.open(values);
  EXPECT_EQ(asked_->nodes, 1);
  values = {without_gradient()};
  skips.close(values);
  EXPECT_TRUE(requires_grad(values[0]));
}

TEST_F(StageSkipsTest, WhatGoesPastAStageNeedsNoNodesWhereNoGradientComesBy) {
  const auto has_nodes = [&](const Skips::Of& of, bool again, Values values) {
    const std::int64_t before = asked_->nodes;
    Skips skips(of, again);
    skips.open(values);
    skips.close(values);
    return asked_->nodes != before;
  };
  EXPECT_TRUE(has_nodes(past(1), false, {rig_.leaf()}));
  EXPECT_FALSE(has_nodes(past(1), true, {rig_.leaf()})) << "a checkpoint is one node";
  EXPECT_FALSE(has_nodes(past(1), false, {without_gradient()}));
  EXPECT_FALSE(has_nodes(past(1), false, integers()));
  EXPECT_FALSE(has_nodes(past(0), false, {rig_.leaf()}));
  EXPECT_FALSE(has_nodes(past(4), false, {rig_.leaf()}));
  const NoGrad no_grad(rig_.autograd(), false);
  EXPECT_FALSE(has_nodes(past(1), false, {rig_.leaf()}));
}

TEST_F(StageSkipsTest, AStageIsTheFirstUnlessItSaysOtherwise) {
  const Skips::Of of{.autograd = autograd(),
                     .layout = layout_,
                     .portals = portals_,
                     .popped = {},
                     .rules = Rules()};
  EXPECT_EQ(of.stage, 0u);
}

}  // namespace
}  // namespace ferry
