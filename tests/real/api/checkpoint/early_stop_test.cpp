// A recompute stops at the op that saves the last tensor that is needed.
#include "ferry/checkpoint.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "real/autograd/torch_autograd.h"
#include "tests/real/api/checkpoint/rig.h"

namespace ferry {
namespace {

struct Calls {
  int begun = 0;
  int between = 0;
  int done = 0;
};

TEST(CheckpointEarlyStop, AnOpThatSavesItsInputIsEnteredAndEndsTheRecompute) {
  for (const bool early : {true, false}) {
    Calls calls;
    const auto block = [&calls](const Tensor& x) {
      ++calls.begun;
      Tensor y = x.exp();
      ++calls.between;
      y = y.sin();
      ++calls.done;
      return y;
    };
    checkpoint(CheckpointOptions().early_stop(early), block, leaf({3})).sum().backward();
    EXPECT_EQ(calls.begun, 2);
    EXPECT_EQ(calls.between, 2);
    EXPECT_EQ(calls.done, early ? 1 : 2);
  }
}

int count(const std::vector<std::string>& ops, const std::string& name) {
  return static_cast<int>(std::count_if(ops.begin(), ops.end(), [&](const std::string& op) {
    return op.compare(0, name.size(), name) == 0 &&
           (op.size() == name.size() || op[name.size()] == ' ');
  }));
}

TEST(CheckpointEarlyStop, ThatOpsKernelDoesNotRun) {
  const Tensor x = leaf({1, 1, 4, 4});
  const Tensor w = leaf({1, 1, 2, 2}, 2);
  const Tensor y =
      checkpoint([](const Tensor& a, const Tensor& b) { return torch::conv2d(a, b); }, x, w);
  const real::TorchAutograd::OpLog log{real::TorchAutograd()};
  y.sum().backward();
  EXPECT_EQ(count(log.names(), "aten::convolution"), 1);
  EXPECT_EQ(count(log.names(), "aten::_convolution"), 0);
}

TEST(OpLog, TheOuterOneHasTheInnerOnesOps) {
  using Log = real::TorchAutograd::OpLog;
  const Tensor x = torch::ones({2, 3});
  const Log outer{real::TorchAutograd()};
  x.sin();
  {
    const Log inner{real::TorchAutograd()};
    torch::cat({x, x});
    EXPECT_EQ(inner.names(), std::vector<std::string>{"aten::cat [2, 3], [2, 3]"});
  }
  x.mm(torch::ones({3, 1}));
  const auto ops = outer.names();
  EXPECT_EQ(count(ops, "aten::sin"), 1);
  EXPECT_EQ(count(ops, "aten::cat"), 1);
  EXPECT_NE(std::find(ops.begin(), ops.end(), "aten::mm [2, 3], [3, 1]"), ops.end());
}

TEST(CheckpointEarlyStop, AnOpThatSavesItsOutputHasRun) {
  const Tensor x = leaf({3});
  for (const bool output : {true, false}) {
    Tensor written;  // by the op that ends the recompute
    const Tensor y = checkpoint(
        [&written, output](const Tensor& in) {
          Tensor z = in.clone();
          written = z.detach();
          return output ? z.exp_() : z.sin_();
        },
        x);
    y.sum().backward();
    EXPECT_TRUE(same(written, output ? x.detach().exp() : x.detach()));
  }
}

// It draws its noise after that was saved: a recompute that left then had none, and all gradients
// of a block that ends so were wrong.
TEST(CheckpointEarlyStop, RReluDrawsItsNoiseBeforeTheRecomputeEnds) {
  const auto block = [](const Tensor& x) { return torch::rrelu(x.exp() - 1, 0.1, 0.9, true); };
  const auto gradient = [&](const auto& run) {
    const Tensor x = (leaf({64}) - 0.6).detach().set_requires_grad(true);
    run(x).sum().backward();
    return x.grad();
  };
  const Since since;
  EXPECT_TRUE(same(gradient([&](const Tensor& x) { return checkpoint(block, x); }),
                   gradient([&](const Tensor& x) { return block(x); })));
  EXPECT_EQ(since.stopped(), 1);
}

TEST(CheckpointEarlyStop, TheGuardWinsAndIsReadInForward) {
  const auto stops = [](bool option, std::vector<bool> guards) {
    const Since since;
    Tensor y;
    {
      std::vector<std::unique_ptr<CheckpointEarlyStopGuard>> guarded;
      for (const bool guard : guards) {
        guarded.push_back(std::make_unique<CheckpointEarlyStopGuard>(guard));
      }
      y = checkpoint(
          CheckpointOptions().early_stop(option), [](const Tensor& x) { return x.exp().sin(); },
          leaf({3}));
      while (!guarded.empty()) guarded.pop_back();
    }
    const CheckpointEarlyStopGuard too_late(!option);
    y.sum().backward();
    return since.stopped() > 0;
  };
  EXPECT_TRUE(stops(true, {}));
  EXPECT_FALSE(stops(false, {}));
  EXPECT_FALSE(stops(true, {false}));
  EXPECT_TRUE(stops(false, {true}));
  EXPECT_TRUE(stops(false, {false, true}));
}

TEST(CheckpointEarlyStop, WhereNothingWasSavedTheFunctionIsNotRunAgain) {
  int calls = 0;
  const Tensor x = leaf({3});
  checkpoint([&calls](const Tensor& in) { return ++calls, in + 1; }, x).sum().backward();
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(same(x.grad(), torch::ones({3}, torch::kFloat64)));
}

}  // namespace
}  // namespace ferry
