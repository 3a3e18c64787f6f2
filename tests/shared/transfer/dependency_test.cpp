// Edges that carry an order: where they lead, that nothing is made where there is nothing to order,
// and which value of a micro-batch carries it.
#include "shared/transfer/dependency.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/shared/transfer/strict_autograd.h"

namespace ferry {
namespace {

using sim::Value;
using test::StrictAutograd;
using NoGrad = sim::SimAutograd::GradModeScope;

class DependencyTest : public testing::Test {
 protected:
  StrictAutograd autograd() { return {rig_.autograd(), asked_}; }
  // The output of an op: its graph is that op's.
  Value result() { return rig_.op({rig_.leaf()}); }
  Value without_gradient(DType dtype = DType::kF32) { return {rig_.fresh(dtype), {}}; }

  test::PipelineRig rig_{1};
  const std::shared_ptr<test::Asked> asked_ = std::make_shared<test::Asked>();
};

TEST_F(DependencyTest, AForkPassesTheValueOnBesideItsPhony) {
  const Value before = result();
  Value value = before;
  const Value phony = fork(autograd(), value);
  EXPECT_EQ(value.tensor, before.tensor);
  EXPECT_NE(value.edge.node, before.edge.node);
  EXPECT_EQ(value.edge.node, phony.edge.node) << "whoever takes either is waited for";
  EXPECT_EQ(value.edge.output, 0u);
  EXPECT_EQ(phony.edge.output, 1u);
  ASSERT_EQ(value.edge.node->next.size(), 1u);
  EXPECT_EQ(value.edge.node->next[0].node, before.edge.node);
}

TEST_F(DependencyTest, AJoinLeadsToTheValueAndToThePhony) {
  Value forked = result();
  const Value phony = fork(autograd(), forked);
  const Value before = result();
  Value value = before;
  join(autograd(), value, phony);
  EXPECT_EQ(value.tensor, before.tensor);
  ASSERT_EQ(value.edge.node->next.size(), 2u);
  EXPECT_EQ(value.edge.node->next[0].node, before.edge.node);
  EXPECT_EQ(value.edge.node->next[1].node, phony.edge.node);
}

TEST_F(DependencyTest, GradientsPassForksAndJoinsAsTheyAre) {
  const Value x = rig_.leaf();
  const Value other = rig_.leaf();
  Value forked = x;
  const Value phony = fork(autograd(), forked);
  Value value = other;
  join(autograd(), value, phony);
  rig_.backward({value});
  EXPECT_TRUE(rig_.autograd().gradient(other).tensor);
  EXPECT_FALSE(rig_.autograd().gradient(x).tensor) << "an order carries no gradient";
}

TEST_F(DependencyTest, WithoutGradModeAValueStaysWhatItIs) {
  const Value before = result();
  Value forked = result();
  const Value phony = fork(autograd(), forked);
  *asked_ = {};
  const NoGrad off(rig_.autograd(), false);
  Value value = before;
  EXPECT_FALSE(autograd().requires_grad(fork(autograd(), value)));
  EXPECT_EQ(value.edge.node, before.edge.node);
  join(autograd(), value, phony);
  EXPECT_EQ(value.edge.node, before.edge.node);
  EXPECT_EQ(asked_->nodes, 0);
  EXPECT_EQ(asked_->phonies, 0);
}

TEST_F(DependencyTest, AValueWithoutAGradientHasNoOrderToGive) {
  Value value = without_gradient();
  const Value phony = fork(autograd(), value);
  EXPECT_FALSE(autograd().requires_grad(phony));
  EXPECT_EQ(asked_->nodes, 0);
  EXPECT_EQ(asked_->phonies, 0);
}

TEST_F(DependencyTest, AnAbsentOrderIsNotJoined) {
  const Value before = result();
  Value value = before;
  join(autograd(), value, Value());
  EXPECT_EQ(value.edge.node, before.edge.node);
  EXPECT_EQ(asked_->nodes, 0);
}

TEST_F(DependencyTest, TheFirstValueThatCanHaveAGradientIsTheLane) {
  std::vector<Value> values = {Value(), without_gradient(DType::kI64), without_gradient(),
                               result()};
  EXPECT_EQ(&lane(autograd(), values), &values[2]);
}

TEST_F(DependencyTest, WithoutALaneAMicroBatchIsRefused) {
  std::vector<Value> values = {Value(), without_gradient(DType::kI64)};
  try {
    lane(autograd(), values);
    FAIL();
  } catch (const ValueError& error) {
    EXPECT_STREQ(error.what(),
                 "No tensor found! A micro-batch needs one that can have a gradient.");
  }
}

}  // namespace
}  // namespace ferry
