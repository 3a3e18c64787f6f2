// What a checkpointed function reads from outside has the version in a recompute that it had in
// forward, or the recompute is an error that names it.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <string>

#include "ferry/checkpoint.h"

namespace ferry {
namespace {

using torch::Tensor;
using Function = std::function<Tensor(Tensor)>;

CheckpointOptions reentrant(bool on) { return CheckpointOptions().reentrant(on); }

// "": backward went through.
std::string error_of(const Tensor& loss) {
  try {
    loss.backward();
  } catch (const CheckpointError& error) {
    return error.what();
  }
  return "";
}

class OutsideReads : public testing::TestWithParam<bool> {
 protected:
  Tensor run(const Function& function, CheckpointOptions options) const {
    return checkpoint(std::move(options), function, x_).sum();
  }
  Tensor run(const Function& function) const { return run(function, reentrant(GetParam())); }

  // Under no_grad, as an optimizer writes.
  static void write(const Tensor& tensor) {
    const torch::NoGradGuard no_grad;
    tensor.add_(1);
  }

  const Tensor x_ = torch::ones({3}, torch::requires_grad());
};

INSTANTIATE_TEST_SUITE_P(Variants, OutsideReads, testing::Bool(), [](const auto& info) {
  return info.param ? "reentrant" : "nonreentrant";
});

TEST_P(OutsideReads, ATensorThatWasWrittenSinceIsNamed) {
  const Tensor shift = torch::ones({3});  // autograd does not save it: nobody else notices
  const Tensor loss = run([&](const Tensor& x) { return (x + shift).sin(); });
  write(shift);
  const std::string error = error_of(loss);
  EXPECT_NE(error.find("CPUFloatType[3], in aten::add"), std::string::npos) << error;
  EXPECT_NE(error.find("at version 1, and was at version 0"), std::string::npos) << error;
}

TEST_P(OutsideReads, ATensorThatNobodyWroteIsNone) {
  const Tensor shift = torch::ones({3});
  EXPECT_EQ(error_of(run([&](const Tensor& x) { return (x + shift).sin(); })), "");
}

TEST_P(OutsideReads, AWriteThroughAnotherViewCounts) {
  const Tensor all = torch::ones({6});
  const Tensor shift = all.slice(0, 0, 3);
  const Tensor loss = run([&](const Tensor& x) { return (x + shift).sin(); });
  write(all);
  EXPECT_NE(error_of(loss), "");
}

TEST_P(OutsideReads, AListOfTensorsIsReadAsWell) {
  const Tensor other = torch::ones({3});
  const Tensor loss = run([&](const Tensor& x) { return torch::cat({x, other}).sin(); });
  write(other);
  EXPECT_NE(error_of(loss), "");
}

// A counter, or running statistics: every run writes them.
TEST_P(OutsideReads, WhatTheFunctionWritesItselfIsOfNoVersion) {
  const Tensor counter = torch::zeros({});
  torch::nn::BatchNorm1d norm(3);
  const Tensor loss = run([&](const Tensor& x) {
    write(counter);
    return norm(torch::stack({x, x + 1 + counter.detach() * 0})).sin();
  });
  write(counter);
  EXPECT_EQ(error_of(loss), "");
}

TEST_P(OutsideReads, WhatTheFunctionMadeMayBeWrittenByItsCaller) {
  const Tensor out = checkpoint(
      reentrant(GetParam()), [](const Tensor& x) { return x.exp() * 2; }, x_);
  EXPECT_EQ(error_of(out.mul_(3).sum()), "");
}

TEST_P(OutsideReads, WhatHasDiedIsReadByNobody) {
  Tensor shift = torch::ones({3});
  const Tensor loss = run([&](const Tensor& x) { return (x + shift).sin(); });
  shift = torch::ones({3});
  write(shift);
  EXPECT_EQ(error_of(loss), "");
}

TEST_P(OutsideReads, AnInnerCheckpointsReadIsTheOutersAsWell) {
  const Tensor shift = torch::ones({3});
  const Tensor loss = run([&](const Tensor& x) {
    return checkpoint([&](const Tensor& y) { return (y + shift).sin(); }, x * 2);
  });
  write(shift);
  EXPECT_NE(error_of(loss), "");
}

// The next backward of a new forward goes through.
TEST_P(OutsideReads, AfterTheErrorTheNextStepWorks) {
  const Tensor shift = torch::ones({3});
  const Function function = [&](const Tensor& x) { return (x + shift).sin(); };
  const Tensor loss = run(function);
  write(shift);
  EXPECT_NE(error_of(loss), "");
  EXPECT_EQ(error_of(run(function)), "");
  EXPECT_TRUE(x_.grad().equal((x_ + shift).cos().detach()));
}

TEST_P(OutsideReads, WithoutTheDeterminismCheckNothingIsCompared) {
  const Tensor shift = torch::ones({3});
  const Tensor loss = run([&](const Tensor& x) { return (x + shift).sin(); },
                          reentrant(GetParam()).determinism_check(DeterminismCheck::kNone));
  write(shift);
  EXPECT_EQ(error_of(loss), "");
}

// Nobody knows yet that the function writes it. (Reentrant functions make no graph to go back on.)
TEST(OutsideReadsInside, ABackwardInsideTheFunctionIsNotHeldToWhatItWrites) {
  const Tensor counter = torch::zeros({3});
  const Tensor w = torch::ones({3}, torch::requires_grad());
  const Tensor x = torch::ones({3}, torch::requires_grad());
  const auto function = [&](const Tensor& y) {
    const Tensor inner = (w + counter).sin().sum();
    {
      const torch::NoGradGuard no_grad;
      counter.add_(1);
    }
    inner.backward();
    return y.sin();
  };
  EXPECT_EQ(error_of(checkpoint(function, x).sum()), "");
}

}  // namespace
}  // namespace ferry
