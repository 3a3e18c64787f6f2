// Nodes of Ferry's own, as pipelines make them: an order, and no tensor.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <array>
#include <string>
#include <vector>

#include "real/autograd/torch_autograd.h"
#include "shared/transfer/dependency.h"

namespace ferry::real {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;

class NodesTest : public ::testing::Test {
 protected:
  static Tensor leaf() { return torch::ones({3}, torch::requires_grad()); }
  TorchAutograd autograd;
};

TEST_F(NodesTest, AnAliasHasTheBytesAndTheVersionButNoGraph) {
  const Tensor x = leaf() * 2;
  const Tensor alias = autograd.tensor(x);
  EXPECT_FALSE(alias.requires_grad());
  EXPECT_FALSE(alias.is_view());
  EXPECT_TRUE(alias.is_alias_of(x));
  EXPECT_FALSE(alias.is_same(x));
  alias.add_(1);
  EXPECT_EQ(x._version(), 1);
  const Tensor made = autograd.leaf(x, true);
  EXPECT_TRUE(made.is_leaf() && made.requires_grad() && made.is_alias_of(x));
  EXPECT_FALSE(autograd.leaf(made, false).requires_grad());
}

TEST_F(NodesTest, WhatCanHaveAGradient) {
  EXPECT_TRUE(autograd.differentiable(torch::zeros({2}, torch::kBFloat16)));
  EXPECT_TRUE(autograd.differentiable(torch::zeros({2}, torch::kComplexFloat)));
  EXPECT_FALSE(autograd.differentiable(torch::zeros({2}, torch::kLong)));
  EXPECT_FALSE(autograd.differentiable(Tensor()));
  EXPECT_FALSE(autograd.exists(Tensor()));
}

TEST_F(NodesTest, GradientsThatNobodyGaveStayUndefined) {
  const Tensor x = leaf();
  Tensors seen;
  const Tensors made =
      autograd.node(std::array{x}, {autograd.tensor(x), torch::zeros({2}), autograd.phony(x)},
                    [&](Tensors gradients) {
                      seen = gradients;
                      return Tensors{gradients[0]};
                    });
  made[0].sum().backward();
  EXPECT_TRUE(seen[0].equal(torch::ones({3})));
  EXPECT_FALSE(seen[1].defined() || seen[2].defined());
  EXPECT_TRUE(x.grad().equal(torch::ones({3})));
  const Tensor y = leaf();
  const Tensors none = autograd.node(std::array{y}, {autograd.tensor(y)},
                                     [](const Tensors&) { return Tensors{Tensor()}; });
  none[0].sum().backward();
  EXPECT_FALSE(y.grad().defined());
}

TEST_F(NodesTest, NoNodeWithoutGradModeOrWithoutAnInputThatRequiresGrad) {
  const auto backward = [](Tensors gradients) { return gradients; };
  const Tensor x = leaf();
  EXPECT_FALSE(
      autograd.node(std::array{x.detach()}, {autograd.tensor(x)}, backward)[0].requires_grad());
  const torch::NoGradGuard no_grad;
  EXPECT_FALSE(autograd.node(std::array{x}, {autograd.tensor(x)}, backward)[0].requires_grad());
}

TEST_F(NodesTest, ARootWithoutAGradientIsAScalars) {
  const Tensor x = leaf();
  const Tensor loss = (x * 3).sum();
  autograd.backward(std::array{loss}, std::array{Tensor()});
  EXPECT_TRUE(x.grad().equal(torch::full({3}, 3.0)));
}

// Aliases of inputs as outputs: nothing is copied, and gradients pass.
TEST_F(NodesTest, ForkAndJoin) {
  const Tensor a = leaf(), b = leaf();
  Tensor first = a * 2, second = b * 3;
  const Tensor before = second;
  const Tensor phony = fork(autograd, first);
  EXPECT_TRUE(phony.requires_grad());
  EXPECT_EQ(phony.numel(), 0);
  join(autograd, second, phony);
  EXPECT_TRUE(second.is_alias_of(before));
  EXPECT_EQ(second.grad_fn()->next_edges().size(), 2u);
  EXPECT_EQ(second.grad_fn()->next_edge(1).function, phony.grad_fn());
  (first.sum() + second.sum()).backward();
  EXPECT_TRUE(a.grad().equal(torch::full({3}, 2.0)));
  EXPECT_TRUE(b.grad().equal(torch::full({3}, 3.0)));
  Tensor plain = torch::ones({3});
  EXPECT_FALSE(fork(autograd, plain).defined()) << "nothing to order";
}

TEST_F(NodesTest, TheBackwardHasNoGraph) {
  const Tensor x = leaf();
  const Tensor y = autograd.node(std::array{x}, {autograd.tensor(x)},
                                 [](Tensors gradients) { return gradients; })[0];
  const Tensor loss = y.square().sum();
  EXPECT_THROW(torch::autograd::grad({loss}, {x}, {}, true, /*create_graph=*/true), c10::Error);
  torch::autograd::grad({loss}, {x});
}

}  // namespace
}  // namespace ferry::real
