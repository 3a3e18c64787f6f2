// What goes wrong under a plan with spans: another model, a step that is cut short, a replay that
// may not run. The cause reaches the caller, nothing is left, and the next step is right.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "ferry/replay.h"
#include "formats/plan.h"
#include "formats/plan_options.h"
#include "plan/survey.h"
#include "tests/real/capture/step.h"

namespace ferry::real::capture {
namespace {

// Four operators, mul, sin, exp and sum, of which a test may change any.
struct Chain : torch::nn::Module {
  Chain() { w = register_parameter("w", torch::linspace(-1, 1, 4096)); }
  torch::Tensor forward() { return last(middle(w * x)).sum(); }

  torch::Tensor w;
  torch::Tensor x = torch::linspace(0, 2, 4096);
  std::function<torch::Tensor(torch::Tensor)> middle = [](const auto& y) { return y.sin(); };
  std::function<torch::Tensor(torch::Tensor)> last = [](const auto& y) { return y.exp(); };
};

class PlannedSpansFailureTest : public ::testing::Test {
 protected:
  PlannedSpansFailureTest() {
    const Step step{chain_, {{"x", chain_->x}}, [this] { chain_->forward().backward(); }};
    const Program program = capture_of(step);
    plan_.options = plan_options(CoreOptions());
    plan_.spans = {{.first = 0, .last = 2, .first_op = "aten.mul", .last_op = "aten.exp"}};
    const auto packs = plan::survey(program, find_hardware("rtx4090"), plan_.spans).packs;
    for (std::size_t i = 0; i < packs.size(); ++i) {
      plan_.entries.push_back(
          {i, packs[i].node, packs[i].layout, packs[i].group, PlanChoice::kOffload});
    }
    expected_ = gradient_of([this] { chain_->forward().backward(); });
    offload_.emplace(plan_, OffloadOptions());
    offload_->exempt(*chain_);
  }
  ~PlannedSpansFailureTest() override {
    EXPECT_TRUE(step_is_right());
    EXPECT_EQ(replay_statistics().alive, 0);
    EXPECT_TRUE(offload_->empty());
  }

  torch::Tensor gradient_of(const std::function<void()>& run) {
    chain_->zero_grad();
    run();
    return chain_->w.grad().clone();
  }
  bool step_is_right() {
    const std::int64_t replays = replay_statistics().replays;
    const torch::Tensor found = gradient_of([this] {
      const OffloadGuard guard(*offload_);
      chain_->forward().backward();
    });
    return replay_statistics().replays == replays + 1 && found.equal(expected_);
  }
  std::string mismatch(const std::function<void()>& run) {
    try {
      const OffloadGuard guard(*offload_);
      run();
    } catch (const PlanMismatch& error) {
      return error.what();
    }
    return "";
  }

  std::shared_ptr<Chain> chain_ = std::make_shared<Chain>();
  Plan plan_;
  torch::Tensor expected_;
  std::optional<Offload> offload_;
};

TEST_F(PlannedSpansFailureTest, EachStepHasTheSpans) {
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(step_is_right()) << i;
}

TEST_F(PlannedSpansFailureTest, AnotherOperatorIsNamed) {
  const auto exp = chain_->last;
  chain_->last = [](const auto& y) { return y.tanh(); };
  EXPECT_EQ(mismatch([this] { chain_->forward().backward(); }),
            "the model does not match the plan at operator 2: the plan has aten.exp, the model "
            "runs aten.tanh");
  chain_->last = exp;
}

TEST_F(PlannedSpansFailureTest, AForwardThatEndsInASpanIsToldByTheNext) {
  EXPECT_EQ(mismatch([this] { (chain_->w * chain_->x).sin(); }), "");
  EXPECT_EQ(mismatch([] {}),
            "the model does not match the plan: the last forward ran 2 operators, and the plan "
            "recomputes operators up to 2");
}

TEST_F(PlannedSpansFailureTest, AnExceptionInASpanLeavesNothing) {
  const auto sin = chain_->middle;
  chain_->middle = [](const auto&) -> torch::Tensor { throw std::runtime_error("mine"); };
  const auto step = [this] {
    const OffloadGuard guard(*offload_);
    chain_->forward().backward();
  };
  EXPECT_THROW(step(), std::runtime_error);
  EXPECT_EQ(replay_statistics().alive, 0);
  EXPECT_TRUE(offload_->empty());
  chain_->middle = sin;
}

TEST_F(PlannedSpansFailureTest, WhatAReplayReadsWasWritten) {
  const torch::Tensor before = chain_->x.clone();
  {
    const OffloadGuard guard(*offload_);
    const torch::Tensor loss = chain_->forward();
    chain_->x.mul_(2);
    EXPECT_THROW(loss.backward(), ModifiedInPlace);
  }
  chain_->x.copy_(before);
}

TEST_F(PlannedSpansFailureTest, AnEvaluationIsNoForward) {
  const std::int64_t spans = replay_statistics().spans;
  {
    const torch::NoGradGuard no_grad;
    const OffloadGuard guard(*offload_);
    chain_->forward();
  }
  EXPECT_EQ(replay_statistics().spans, spans);
  const auto exp = chain_->last;
  for (const bool shorter : {false, true}) {
    const OffloadGuard guard(*offload_);
    const torch::NoGradGuard no_grad;
    chain_->last = [](const auto& y) { return y.tanh(); };
    shorter ? chain_->w * chain_->x : chain_->forward();
  }
  chain_->last = exp;
}

// The span's last operator is the last that runs.
TEST_F(PlannedSpansFailureTest, ABackwardThatIsGivenItsGradients) {
  chain_->zero_grad();
  {
    const OffloadGuard guard(*offload_);
    const torch::Tensor y = chain_->last(chain_->middle(chain_->w * chain_->x));
    y.backward(torch::Tensor(expected_).fill_(1));
  }
  expected_ = gradient_of([this] { chain_->forward().backward(); });
  EXPECT_TRUE(step_is_right());
}

TEST_F(PlannedSpansFailureTest, OperatorsOfOtherThreadsAreNotTheForwards) {
  chain_->zero_grad();
  {
    const OffloadGuard guard(*offload_);
    const torch::Tensor y = chain_->w * chain_->x;
    std::thread([] { torch::ones({3}).mul(2).sin(); }).join();
    chain_->last(chain_->middle(y)).sum().backward();
  }
  EXPECT_TRUE(chain_->w.grad().equal(expected_));
}

TEST_F(PlannedSpansFailureTest, AGraphIsKeptAndDifferentiatedAgain) {
  const auto second = [this](const torch::Tensor& loss) {
    const auto first = torch::autograd::grad({loss}, {chain_->w}, {}, /*retain_graph=*/true,
                                             /*create_graph=*/true)[0];
    return torch::autograd::grad({first.pow(2).sum()}, {chain_->w})[0];
  };
  torch::Tensor loss;
  {
    const OffloadGuard guard(*offload_);
    loss = chain_->forward();
  }
  EXPECT_TRUE(second(loss).equal(second(chain_->forward())));
}

}  // namespace
}  // namespace ferry::real::capture
