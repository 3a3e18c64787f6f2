#include "ferry/checkpoint.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "tests/real/api/checkpoint/rig.h"

namespace ferry {
namespace {

using Model = Tensor (*)(const Tensor&, const Tensor&);

Tensor exponential(const Tensor& x, const Tensor& w) { return (x.exp() * w).sin().exp(); }
Tensor product(const Tensor& x, const Tensor& w) { return x.matmul(w).tanh().matmul(w) * x; }
Tensor perceptron(const Tensor& x, const Tensor& w) {
  return torch::linear(torch::gelu(torch::linear(x, w, w[0])), w).sigmoid();
}
Tensor convolution(const Tensor& x, const Tensor& w) {
  const Tensor image = x.view({1, 1, 4, 4});
  return torch::conv2d(image, w.view({4, 1, 2, 2})).tanh().mean(1).view({1, 9});
}
Tensor in_place(const Tensor& x, const Tensor& w) {
  Tensor y = x * w;
  y.add_(w).mul_(2);
  return y.exp_().sin();
}

Tensor nested(int depth, const CheckpointOptions& options, Model model, const Tensor& x,
              const Tensor& w) {
  if (depth == 0) return model(x, w);
  return checkpoint(
      options,
      [=](const Tensor& inner_x, const Tensor& inner_w) {
        return nested(depth - 1, options, model, inner_x, inner_w).cos();
      },
      x, w);
}
Tensor plain(int depth, Model model, const Tensor& x, const Tensor& w) {
  return depth == 0 ? model(x, w) : plain(depth - 1, model, x, w).cos();
}

TEST(Checkpoint, ValuesAndDerivativesToThirdOrderAreTheSameBits) {
  const Tensors inputs = {leaf({4, 4}), leaf({4, 4}, 2)};
  for (const Model model : {exponential, product, perceptron, convolution, in_place}) {
    for (int depth = 1; depth <= 3; ++depth) {
      const Tensors expected = derivatives(
          [&](const Tensors& in) { return plain(depth, model, in[0], in[1]); }, inputs, 3);
      for (const bool early : {true, false}) {
        const auto options = CheckpointOptions().early_stop(early);
        const Since since;
        EXPECT_TRUE(same(expected, derivatives(
                                       [&](const Tensors& in) {
                                         return nested(depth, options, model, in[0], in[1]);
                                       },
                                       inputs, 3)));
        EXPECT_GT(since.recomputes(), 0);
        EXPECT_EQ(since.stopped() > 0, early);
        EXPECT_EQ(since.alive(), 0);
      }
    }
  }
}

TEST(Checkpoint, ModulesLearnTheSame) {
  const auto step = [](bool checkpointed) {
    torch::manual_seed(3);
    torch::nn::Sequential net(torch::nn::Conv2d(1, 4, 3), torch::nn::ReLU(),
                              torch::nn::Conv2d(4, 2, 3), torch::nn::Tanh());
    const Tensor x = torch::randn({2, 1, 8, 8});
    const Tensor y = checkpointed ? checkpoint(net, x) : net->forward(x);
    y.pow(2).mean().backward();
    Tensors result{y.detach()};
    for (const Tensor& parameter : net->parameters()) result.push_back(parameter.grad());
    return result;
  };
  EXPECT_TRUE(same(step(false), step(true)));
}

TEST(Checkpoint, ReturnsWhatTheFunctionReturns) {
  const Tensor x = leaf({3});
  const auto [a, b] =
      checkpoint([](const Tensor& in) { return std::make_tuple(in.exp(), in.sin()); }, x);
  (a + b).sum().backward();
  EXPECT_TRUE(same(x.grad(), x.detach().exp() + x.detach().cos()));

  struct Named {
    Tensor value;
    int count;
  };
  const Named named = checkpoint([](const Tensor& in) { return Named{in.exp(), 3}; }, x);
  EXPECT_EQ(named.count, 3);
  const Tensors many = checkpoint([](const Tensor& in) { return Tensors{in.exp(), in.sin()}; }, x);
  EXPECT_EQ(many.size(), 2u);
  int calls = 0;
  checkpoint([&calls](const Tensor&) { ++calls; }, x);
  EXPECT_EQ(calls, 1);
}

TEST(Checkpoint, TakesAnyMixOfArguments) {
  Tensor x = leaf({3});
  Tensor w = leaf({3}, 2);
  int called = 0;
  const auto block = [](int n, const Tensor& a, const std::unique_ptr<double>& factor, Tensor b,
                        const std::string& name, int& calls, const Tensor& none) {
    EXPECT_EQ(name, "name");
    EXPECT_FALSE(none.defined());
    ++calls;
    b = b.exp();
    return (a * b * *factor).pow(n).sin();
  };
  const Tensor y =
      checkpoint(block, 2, x, std::make_unique<double>(1.5), w, "name", std::ref(called), Tensor());
  y.sum().backward();
  EXPECT_EQ(called, 2);
  const Tensors expected = torch::autograd::grad({(x * w.exp() * 1.5).pow(2).sin().sum()}, {x, w});
  EXPECT_TRUE(same(Tensors{x.grad(), w.grad()}, expected));
}

TEST(Checkpoint, OptionsMayBeANamedObject) {
  auto options = CheckpointOptions().early_stop(false).preserve_rng_state(false);
  const Tensor x = leaf({3});
  const Since since;
  checkpoint(
      options, [](const Tensor& in) { return in.sin(); }, x)
      .sum()
      .backward();
  EXPECT_EQ(since.stopped(), 0);
}

TEST(Checkpoint, WithoutGradModeTheFunctionJustRuns) {
  const Tensor x = leaf({3});
  const Since since;
  const torch::NoGradGuard no_grad;
  checkpoint([](const Tensor& in) { return in.sin(); }, x);
  EXPECT_EQ(since.segments(), 0);
}

TEST(Checkpoint, ABatchNormThatAsksUpdatesItsStatisticsOnce) {
  const auto step = [](bool checkpointed) {
    torch::manual_seed(2);
    torch::nn::BatchNorm1d norm(4);
    const Tensor x = torch::randn({8, 4}, torch::requires_grad());
    auto block = [norm](const Tensor& in) mutable {
      const double momentum = is_recomputing() ? 0. : 0.1;
      return torch::batch_norm(in, norm->weight, norm->bias, norm->running_mean, norm->running_var,
                               true, momentum, 1e-5, false)
          .sin();
    };
    (checkpointed ? checkpoint(block, x) : block(x)).sum().backward();
    return Tensors{norm->running_mean, norm->running_var, norm->weight.grad(), x.grad()};
  };
  EXPECT_TRUE(same(step(false), step(true)));
}

TEST(Checkpoint, LongChainsAndDeepNestsDoNotOverflowTheStack) {
  const Tensor x = leaf({2});
  for (const bool backward : {true, false}) {
    const Since since;
    Tensor y = x;
    for (int i = 0; i < 1000; ++i) {
      y = checkpoint([](const Tensor& in) { return in.sin().cos(); }, y);
    }
    if (backward) y.sum().backward();
    y = Tensor();
    EXPECT_EQ(since.alive(), 0);
  }
  const Tensor deep = nested(60, CheckpointOptions(), exponential, x, x);
  const Tensors expected = torch::autograd::grad({plain(60, exponential, x, x).sum()}, {x});
  EXPECT_TRUE(same(torch::autograd::grad({deep.sum()}, {x}), expected));
}

TEST(CheckpointSequential, CutsAChainAndRunsTheLastPartPlainly) {
  const Tensors inputs = {leaf({3})};
  int calls = 0;
  const std::vector<std::function<Tensor(Tensor)>> chain(
      5, [&calls](const Tensor& x) { return ++calls, x.sin().exp(); });
  const auto run = [&](std::int64_t segments) {
    calls = 0;
    return derivatives(
        [&](const Tensors& in) { return checkpoint_sequential(chain, segments, in[0]); }, inputs,
        1);
  };
  const Tensors expected = run(1);
  EXPECT_EQ(calls, 5);
  EXPECT_TRUE(same(run(2), expected));
  EXPECT_EQ(calls, 5 + 2);
  EXPECT_TRUE(same(run(5), expected));
  EXPECT_EQ(calls, 5 + 4);
  EXPECT_THROW(run(6), ValueError);
  EXPECT_THROW(run(0), ValueError);
}

TEST(CheckpointSequential, TakesASequential) {
  const auto step = [](std::int64_t segments) {
    torch::manual_seed(3);
    torch::nn::Sequential net(torch::nn::Linear(4, 4), torch::nn::Tanh(), torch::nn::Linear(4, 4));
    checkpoint_sequential(net, segments, torch::randn({2, 4}, torch::requires_grad()))
        .sum()
        .backward();
    Tensors gradients;
    for (const Tensor& parameter : net->parameters()) gradients.push_back(parameter.grad());
    return gradients;
  };
  EXPECT_TRUE(same(step(1), step(3)));
}

}  // namespace
}  // namespace ferry
