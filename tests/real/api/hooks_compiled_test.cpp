// What compiled autograd reads of a graph with Ferry's hooks. LibTorch hands it the graph in place
// of running it (Engine::set_compiled_autograd); PyTorch's own asks each node for its saved tensors
// by CompiledNodeArgs, as is done here.
#include "ferry/hooks.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/generated/Functions.h>
#include <torch/csrc/dynamo/compiled_autograd.h>
#include <torch/torch.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ferry/checkpoint.h"
#include "ferry/offload.h"
#include "tests/real/api/message.h"

namespace ferry {
namespace {

namespace compiled = torch::dynamo::autograd;

torch::Tensor count_to_4() { return torch::arange(1, 5, torch::kFloat64).set_requires_grad(true); }

// The tensors that it reads of a node.
std::vector<torch::Tensor> read(const decltype(torch::autograd::Edge::function)& node) {
  compiled::AutogradCompilerCall call(compiled::SizeInput::STATIC);
  compiled::NodeCall node_call(0, node);
  compiled::CompiledNodeArgs arguments(call, node_call);
  node->compiled_args(arguments);
  return call.tensor_args.inputs;
}

void expect_its_inputs(const torch::Tensor& y, const torch::Tensor& x) {
  const std::vector<torch::Tensor> tensors = read(y.grad_fn());
  ASSERT_FALSE(tensors.empty());
  for (const torch::Tensor& tensor : tensors) EXPECT_TRUE(tensor.equal(x));
}

TEST(CompiledAutograd, ReadsWhatHooksUnpack) {
  const auto x = count_to_4();
  int unpacked = 0;
  const SavedTensorsHooks hooks([](const torch::Tensor& saved) { return saved.clone(); },
                                [&](const torch::Tensor& packed) { return ++unpacked, packed; });
  expect_its_inputs(x * x, x);
  EXPECT_GT(unpacked, 0);
}

TEST(CompiledAutograd, ReadsWhatWasOffloaded) {
  const auto x = count_to_4() + 1;
  const OffloadGuard guard(OffloadOptions().window(0).min_bytes(0));
  expect_its_inputs(x * x, x);
}

TEST(CompiledAutograd, ReadsWhatACheckpointRecomputes) {
  const auto x = count_to_4();
  const auto y = checkpoint([](const torch::Tensor& in) { return in * in; }, x);
  expect_its_inputs(y, x);
}

// What it saves while it traces stands for a tensor, and has no bytes to pack.
TEST(CompiledAutograd, NothingIsPackedWhileItTraces) {
  int packed = 0;
  const SavedTensorsHooks hooks([&](const torch::Tensor& x) { return ++packed, x; },
                                [](const torch::Tensor& x) { return x; });
  const bool before = at::SavedTensorDefaultHooks::set_tracing(true);
  count_to_4().exp();
  at::SavedTensorDefaultHooks::set_tracing(before);
  EXPECT_EQ(packed, 0);
}

// A node of Ferry's own is nothing that it could write into what it compiles.
TEST(CompiledAutograd, AReentrantCheckpointIsRefusedByName) {
  const auto y = checkpoint(
      CheckpointOptions().reentrant(true), [](const torch::Tensor& x) { return x.exp(); },
      count_to_4());
  EXPECT_NE(message([&] {
              read(y.grad_fn());
            }).find("ferry::checkpoint with reentrant on: compiled autograd cannot trace"),
            std::string::npos);
}

}  // namespace
}  // namespace ferry
