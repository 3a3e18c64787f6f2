// A stage whose graph is cut: what its results are said to need, and where its backward begins.
#include "shared/pipeline/cut_stage.h"

#include <gtest/gtest.h>

#include "tests/shared/pipeline/cut_stages.h"

namespace ferry::test {
namespace {

using Flags = std::vector<bool>;

TEST_F(CutStageTest, AResultRequiresGradWhereTheStageSaysSo) {
  Stage stage = this->stage(
      [&](Values in) {
        return Values{in[0], rig_.op({in[1]}), constant(DType::kI64)};
      },
      {constant(), rig_.leaf()});
  EXPECT_EQ(require_grad(stage.forward().values), (Flags{false, true, false}));
}

// Only the second run makes the graph; whatever can have a gradient may get one then.
TEST_F(CutStageTest, BeforeItsGraphIsMadeAResultRequiresGradIfItsTypeCan) {
  Stage stage = this->stage(
      [&](Values in) {
        return Values{rig_.op(in), constant(), constant(DType::kI64), Value()};
      },
      {rig_.leaf()});
  const Values leaving = stage.forward_checkpointed(true).values;
  EXPECT_EQ(require_grad(leaving), (Flags{true, true, false, false}));
  EXPECT_EQ(exist(leaving), (Flags{true, true, true, false}));
}

TEST_F(CutStageTest, OnlyResultsThatRequireGradEnterTheCut) {
  const Value leaf = rig_.leaf();
  Stage stage = this->stage(
      [&](Values in) {
        return Values{constant(), rig_.op(in), constant(), rig_.op(in)};
      },
      {leaf});
  stage.forward();
  ASSERT_EQ(asked().nodes.size(), 1u);
  EXPECT_EQ(asked().nodes.front().inputs, 2u);
  stage.backward(gradients(4));
  EXPECT_EQ(exist(stage.gradients().values), (Flags{true}));
}

TEST_F(CutStageTest, AStageWhoseResultsNeedNoGradHasNoCutAndNoBackward) {
  Stage stage = this->stage([&](Values in) { return Values{rig_.op({in[0]})}; }, {constant()});
  stage.forward();
  EXPECT_TRUE(asked().nodes.empty());
  EXPECT_TRUE(asked().phonies.empty());
  stage.backward(gradients(1));
  EXPECT_TRUE(asked().roots.empty());
  EXPECT_EQ(exist(stage.gradients().values), (Flags{false}));
}

// What it passes on has the place in the graph that it came with.
TEST_F(CutStageTest, AFirstRunWithoutAGraphHasNoCut) {
  Stage stage = this->stage([](Values in) { return in; }, {rig_.leaf()});
  stage.forward_checkpointed(true);
  EXPECT_TRUE(asked().nodes.empty());
  EXPECT_TRUE(asked().phonies.empty());
  stage.recompute();
  EXPECT_EQ(asked().nodes.size(), 1u);
  stage.backward(gradients(1));
  EXPECT_EQ(exist(stage.gradients().values), (Flags{true}));
}

TEST_F(CutStageTest, BackwardBeginsAtTheCutWithAPhony) {
  Stage stage = this->stage([&](Values in) { return Values{rig_.op(in)}; }, {rig_.leaf()});
  stage.forward();
  stage.backward(gradients(1));
  EXPECT_EQ(asked().roots, (Flags{true}));
  EXPECT_EQ(exist(stage.gradients().values), (Flags{true}));
}

// An absent gradient means 1.
TEST_F(CutStageTest, BackwardBeginsAtALossWithNoGradient) {
  Stage stage = this->stage([&](Values in) { return Values{rig_.op(in)}; }, {rig_.leaf()});
  stage.ends_in_loss();
  stage.forward();
  stage.backward({});
  EXPECT_EQ(asked().roots, (Flags{false}));
  EXPECT_TRUE(asked().phonies.empty());
  EXPECT_EQ(exist(stage.gradients().values), (Flags{true}));
}

}  // namespace
}  // namespace ferry::test
