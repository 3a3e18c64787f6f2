// Layers with several inputs and outputs compute in stages what they compute in a Sequential.
#include "ferry/pipe_tuple.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>

#include "tests/real/api/message.h"
#include "tests/real/pipeline/rig.h"

namespace ferry {
namespace {

using Two = std::tuple<Tensor, Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;
using Pair = std::pair<Tensor, Tensor>;
using OfLstm = std::tuple<Tensor, Two>;

static_assert(TensorTuple<Two> && TensorTuple<Pair> && TensorTuple<OfLstm>);
static_assert(!TensorTuple<Tensor>, "a tensor is no tuple of one");
static_assert(!TensorTuple<Tensors>, "how many there are is not its type's");
static_assert(!TensorTuple<std::tuple<>> && !TensorTuple<std::tuple<Tensor, std::int64_t>>);

// A layer made of a function, with one weight.
template <class In, class Out>
struct WeighImpl : torch::nn::Module {
  using Run = std::function<Out(const Tensor& w, In)>;
  explicit WeighImpl(Run function) : run(std::move(function)) {
    w = register_parameter("w", torch::arange(1, 4, torch::kFloat64));
  }
  Out forward(In values) { return run(w, std::move(values)); }
  Tensor w;
  Run run;
};
template <class In, class Out>
std::shared_ptr<WeighImpl<In, Out>> weigh(typename WeighImpl<In, Out>::Run run) {
  return std::make_shared<WeighImpl<In, Out>>(std::move(run));
}

// The number of tensors between its layers is 2, 3 and 2; and each is used.
torch::nn::Sequential branching() {
  return torch::nn::Sequential(
      weigh<Tensor, Two>([](const Tensor& w, const Tensor& x) { return Two(x * w, x + w); }),
      weigh<Two, Three>([](const Tensor& w, const Two& values) {
        const auto& [a, b] = values;
        return Three(a * b, b * w, a);
      }),
      weigh<Three, Pair>([](const Tensor& w, const Three& values) {
        const auto& [a, b, c] = values;
        return Pair(a + b * w, c);
      }),
      weigh<Pair, Tensor>(
          [](const Tensor& w, const Pair& values) { return values.first * w - values.second; }));
}

TEST(PipeTupleTest, AStepIsALoopOverItsMicroBatches) {
  for_all_options({1, 1, 1, 1}, 4, [](const PipeOptions& options) {
    auto layers = branching();
    const Tensor expected = plain_step(layers, batch(8), batch(8), 4);
    const Tensors before = gradients(layers);
    layers->zero_grad();
    Pipe pipe(layers, options);
    EXPECT_TRUE(same({pipe.step(batch(8), batch(8), sum_of)}, {expected}));
    EXPECT_TRUE(same(gradients(layers), before));
  });
}

TEST(PipeTupleTest, ForwardIsTheLayersAndItsBackwardTheirs) {
  for (const CheckpointMode mode : kModes) {
    SCOPED_TRACE(name(mode));
    auto layers = branching();
    const Tensor y = layers->forward(batch(8));
    (y * batch(8)).sum().backward();
    const Tensors expected = gradients(layers);
    layers->zero_grad();
    Pipe pipe(layers, PipeOptions().balance({1, 2, 1}).microbatches(3).checkpoint(mode));
    const Tensor out = pipe.forward(batch(8));
    EXPECT_TRUE(same({out}, {y}));
    (out * batch(8)).sum().backward();
    EXPECT_TRUE(same(gradients(layers), expected));
  }
}

// The caller's tuple comes to the first layer as one, and the last layer's as a list to the caller.
TEST(PipeTupleTest, ThePipesOwnInputsAndOutputs) {
  const auto mixing = [] {
    const auto mix = [] {
      return weigh<Two, Two>([](const Tensor& w, const Two& values) {
        const auto& [a, b] = values;
        return Two(a * w + b, a);
      });
    };
    return torch::nn::Sequential(mix(), mix());
  };
  const Two inputs(batch(6), batch(6) + 1);
  for (const CheckpointMode mode : kModes) {
    SCOPED_TRACE(name(mode));
    auto layers = mixing();
    const auto [a, b] = layers->forward<Two>(inputs);
    (a * b).sum().backward();
    const Tensors expected = gradients(layers);
    layers->zero_grad();
    Pipe pipe(layers, PipeOptions().balance({1, 1}).microbatches(3).checkpoint(mode));
    const Tensors outputs = pipe.forward(inputs);
    EXPECT_TRUE(same(outputs, {a, b}));
    (outputs[0] * outputs[1]).sum().backward();
    EXPECT_TRUE(same(gradients(layers), expected));

    layers->zero_grad();
    pipe.step(inputs, {batch(6)}, [](const Tensors& values, const Tensors&) {
      return (values[0] * values[1]).sum() * 3;  // a step divides by the micro-batches
    });
    EXPECT_TRUE(same(gradients(layers), expected));
  }
}

// What LibTorch's own recurrent layers return crosses stages.
TEST(PipeTupleTest, AnLstmsResultCrossesStages) {
  const auto recurrent = [] {
    torch::manual_seed(1);
    torch::nn::Sequential layers(torch::nn::LSTM(torch::nn::LSTMOptions(3, 3).batch_first(true)),
                                 weigh<OfLstm, Tensor>([](const Tensor& w, const OfLstm& values) {
                                   const auto& [outputs, states] = values;
                                   return outputs.select(1, 1) * w + std::get<0>(states)[0] -
                                          std::get<1>(states)[0];
                                 }));
    layers->to(torch::kFloat64);
    return layers;
  };
  const Tensor x = batch(16).view({8, 2, 3});
  for (const CheckpointMode mode : kModes) {
    SCOPED_TRACE(name(mode));
    auto layers = recurrent();
    const Tensor expected = plain_step(layers, x, batch(8), 4);
    const Tensors before = gradients(layers);
    layers->zero_grad();
    Pipe pipe(layers, PipeOptions().balance({1, 1}).microbatches(4).checkpoint(mode));
    EXPECT_TRUE(same({pipe.step(x, batch(8), sum_of)}, {expected}));
    EXPECT_TRUE(same(gradients(layers), before));
  }
}

TEST(PipeTupleTest, WhatIsNoTensorDoesNotCross) {
  using Mixed = std::tuple<Tensor, std::int64_t>;
  torch::nn::Sequential layers(
      weigh<Tensor, Mixed>([](const Tensor& w, const Tensor& x) { return Mixed(x * w, 1); }),
      weigh<Mixed, Tensor>([](const Tensor&, const Mixed& values) { return std::get<0>(values); }));
  Pipe apart(layers, PipeOptions().balance({1, 1}));
  EXPECT_THROW(apart.forward(batch(2)), ValueError);
  EXPECT_NE(message([&] { apart.forward(batch(2)); })
                .find("expected layers that return a tensor, a vector, a pair or a tuple of "
                      "tensors, found std::tuple<at::Tensor, long>"),
            std::string::npos);
  Pipe together(layers, PipeOptions().balance({2}));
  EXPECT_TRUE(same({together.forward(batch(2))}, {layers->forward(batch(2))}));
}

}  // namespace
}  // namespace ferry
