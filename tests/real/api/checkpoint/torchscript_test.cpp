// A model that comes as TorchScript: its interpreter catches what passes through it, and throws an
// error of its own.
#include <gtest/gtest.h>
#include <torch/jit.h>
#include <torch/script.h>
#include <torch/torch.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ferry/checkpoint.h"
#include "tests/real/api/checkpoint/rig.h"

namespace ferry {
namespace {

torch::jit::Module scripted() {
  torch::jit::Module module("Block");
  torch::manual_seed(3);
  module.register_parameter("w", torch::rand({8, 8}, torch::kFloat64).requires_grad_(), false);
  module.register_parameter("b", torch::rand({8}, torch::kFloat64).requires_grad_(), false);
  module.define(R"(
    def forward(self, x):
        for i in range(3):
            x = torch.tanh(torch.matmul(x, self.w) + self.b)
            x = x * torch.sigmoid(x).exp()
        return x
  )");
  return module;
}

Tensor plain(const Tensor& start, const Tensor& w, const Tensor& b) {
  Tensor x = start;
  for (int i = 0; i < 3; ++i) {
    x = torch::tanh(torch::matmul(x, w) + b);
    x = x * torch::sigmoid(x).exp();
  }
  return x;
}

// Several steps: the interpreter profiles the first ones, and runs other code after.
void expect_right(const CheckpointOptions& options) {
  torch::jit::Module module = scripted();
  const Tensor x = leaf({4, 8});
  const Tensor w = module.attr("w").toTensor();
  const Tensor b = module.attr("b").toTensor();
  const Tensors expected = torch::autograd::grad({plain(x, w, b).sum()}, {x, w, b});
  const auto block = [module](const Tensor& in) mutable { return module.forward({in}).toTensor(); };
  for (int step = 0; step < 4; ++step) {
    const Tensor y = checkpoint(options, block, x);
    EXPECT_TRUE(same(torch::autograd::grad({y.sum()}, {x, w, b}), expected)) << "step " << step;
  }
}

TEST(CheckpointTorchScript, AScriptedModuleGivesThePlainGradients) {
  const Since since;
  expect_right(CheckpointOptions());
  EXPECT_EQ(since.recomputes(), 4);
  EXPECT_EQ(since.stopped(), 4);
}

TEST(CheckpointTorchScript, AndToTheEnd) {
  const Since since;
  expect_right(to_the_end());
  EXPECT_EQ(since.recomputes(), 4);
  EXPECT_EQ(since.stopped(), 0);
}

// An outer one's stop passes through the inner one's interpreter.
TEST(CheckpointTorchScript, WithinAnotherCheckpoint) {
  torch::jit::Module module = scripted();
  const Tensor x = leaf({4, 8});
  const auto inner = [module](const Tensor& in) mutable { return module.forward({in}).toTensor(); };
  const auto outer = [inner](const Tensor& in) { return checkpoint(inner, in.sin()).exp(); };
  const Tensor w = module.attr("w").toTensor();
  const Tensor b = module.attr("b").toTensor();
  const Tensors expected = torch::autograd::grad({plain(x.sin(), w, b).exp().sum()}, {x, w, b});
  for (int step = 0; step < 4; ++step) {
    EXPECT_TRUE(same(torch::autograd::grad({checkpoint(outer, x).sum()}, {x, w, b}), expected));
  }
}

// What the script itself throws before everything is there is no stop.
TEST(CheckpointTorchScript, AnErrorOfTheScriptsOwnLeavesBackward) {
  torch::jit::Module module("Block");
  module.register_attribute("calls", c10::IntType::get(), 0);
  module.define(R"(
    def forward(self, x):
        x = x.exp()
        self.calls += 1
        assert self.calls < 2, "the second call"
        return x.sin()
  )");
  const auto block = [module](const Tensor& in) mutable { return module.forward({in}).toTensor(); };
  const Tensor y = checkpoint(block, leaf({4}));
  EXPECT_TRUE(throws<std::exception>("the second call", [&] { y.sum().backward(); }));
}

}  // namespace
}  // namespace ferry
