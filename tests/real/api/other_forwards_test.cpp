#include "real/api/other_forwards.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <memory>
#include <string>
#include <vector>

#include "formats/plan.h"
#include "formats/plan_options.h"
#include "tests/real/api/message.h"

namespace ferry {
namespace {

struct Step {
  torch::Tensor weight = torch::full({64}, 0.5F).requires_grad_();

  // Saves the batch, f32 [batch, 64], twice, and what else is asked for.
  torch::Tensor loss(std::int64_t batch, int more = 0) {
    torch::Tensor y = torch::ones({batch, 64}) * weight;
    for (int i = 0; i < 1 + more; ++i) y = y.exp();
    return y.sum();
  }
  torch::Tensor gradient() {
    torch::Tensor taken = weight.grad().clone();
    weight.mutable_grad().reset();
    return taken;
  }
};

// Of a batch of 8: the ones and the exponential move.
Plan planned() {
  Plan plan;
  CoreOptions options;
  options.min_bytes = 1;
  plan.options = plan_options(options);
  for (std::uint64_t pack = 0; pack < 2; ++pack) {
    plan.entries.push_back(
        {pack, "Op", {DType::kF32, {8, 64}, {64, 1}, 0}, pack, PlanChoice::kOffload});
  }
  return plan;
}

class OtherForwardsTest : public ::testing::Test {
 protected:
  // A step under the plan, and the same without.
  void expect_same(Offload& offload, std::int64_t batch, int more = 0) {
    {
      const OffloadGuard guard(offload);
      step.loss(batch, more).backward();
    }
    const torch::Tensor ours = step.gradient();
    step.loss(batch, more).backward();
    EXPECT_TRUE(ours.equal(step.gradient()));
  }
  static Offload made(OtherShapes others) {
    return {planned(), OffloadOptions().min_bytes(1).other_shapes(others)};
  }
  Step step;
};

TEST_F(OtherForwardsTest, ASmallerBatchIsOffloadedOrKeptAndCounted) {
  for (const OtherShapes others : {OtherShapes::kOffload, OtherShapes::kKeep}) {
    Offload offload = made(others);
    expect_same(offload, 8);
    const std::int64_t moved = offload.statistics().offloaded_count;
    EXPECT_EQ(moved, 2);
    expect_same(offload, 3);
    EXPECT_EQ(offload.other_forwards(), 1);
    const std::int64_t more = others == OtherShapes::kOffload ? 2 : 0;
    EXPECT_EQ(offload.statistics().offloaded_count, moved + more);
    expect_same(offload, 8);
    EXPECT_EQ(offload.other_forwards(), 1);
    EXPECT_TRUE(offload.empty());
  }
}

TEST_F(OtherForwardsTest, AnotherModelIsAnErrorUntilAForwardWasThePlans) {
  Offload offload = made(OtherShapes::kOffload);
  const auto other = [&] {
    const OffloadGuard guard(offload);
    step.loss(8, /*more=*/2);
  };
  EXPECT_NE(message(other).find("the plan ends before it"), std::string::npos);
  EXPECT_NE(message(other).find("one guard is one forward"), std::string::npos);
  expect_same(offload, 3);  // another batch first
  EXPECT_NE(message(other).find("the plan ends before it"), std::string::npos);
  expect_same(offload, 8);
  expect_same(offload, 8, /*more=*/2);
  EXPECT_EQ(offload.other_forwards(), 2);
}

TEST_F(OtherForwardsTest, WhatALossSavesOfItsOwnIsNoOtherForward) {
  Offload offload = made(OtherShapes::kKeep);
  {
    const OffloadGuard guard(offload);
    (step.loss(8) / torch::tensor(3.0F)).backward();
  }
  step.gradient();
  EXPECT_EQ(offload.other_forwards(), 0);
  Offload strict = made(OtherShapes::kRaise);
  const OffloadGuard guard(strict);
  EXPECT_NE(message([&] { step.loss(8) / torch::tensor(3.0F); }).find("the plan ends before it"),
            std::string::npos);
}

TEST_F(OtherForwardsTest, AForwardThatEndsTooSoonIsAnErrorUntilOneWasThePlans) {
  Offload offload = made(OtherShapes::kOffload);
  const auto half = [&] {
    const OffloadGuard guard(offload);
    (torch::ones({8, 64}) * step.weight).sum().backward();
    step.gradient();
  };
  half();
  EXPECT_NE(message(half).find("the last forward saved 1 tensors"), std::string::npos);
  expect_same(offload, 8);
  half();
  half();
  EXPECT_EQ(offload.other_forwards(), 1) << "of the second it is not known yet";
}

TEST_F(OtherForwardsTest, WithoutLeaveAnotherShapeIsAnError) {
  Offload offload = made(OtherShapes::kRaise);
  const std::string text = message([&] {
    const OffloadGuard guard(offload);
    step.loss(3);
  });
  EXPECT_NE(text.find("the plan has f32 [8, 64]"), std::string::npos) << text;
  EXPECT_EQ(offload.other_forwards(), 0);
}

}  // namespace
}  // namespace ferry
