// A pipe is a module like any other: a training loop, a state on disk and a report that are written
// for modules take it.
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "ferry/pipe.h"
#include "tests/real/api/message.h"
#include "tests/real/pipeline/rig.h"

namespace ferry {
namespace {

torch::nn::Sequential layers(std::int64_t seed) {
  torch::manual_seed(static_cast<std::uint64_t>(seed));
  return torch::nn::Sequential(torch::nn::Linear(3, 4), torch::nn::BatchNorm1d(4),
                               torch::nn::Linear(4, 2));
}
Pipe pipe_of(const torch::nn::Sequential& chain) {
  return Pipe(chain,
              PipeOptions().balance({1, 2}).microbatches(2).checkpoint(CheckpointMode::kNever));
}

TEST(PipeModuleTest, ItHasItsLayersParametersAndBuffersByTheirNames) {
  const auto chain = layers(1);
  Pipe pipe = pipe_of(chain);
  EXPECT_EQ(pipe->named_parameters().keys(), chain->named_parameters().keys());
  EXPECT_EQ(pipe->named_buffers().keys(), chain->named_buffers().keys());
  EXPECT_TRUE(pipe->named_buffers().contains("1.running_mean"));
  EXPECT_EQ(pipe->stages(), 2u);
  EXPECT_EQ(pipe->options().balance(), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(pipe->options().microbatches(), 2);
  EXPECT_EQ(pipe->devices().size(), 2u);
  EXPECT_EQ(pipe->name(), "ferry::Pipe");
  EXPECT_TRUE(
      c10::str(*pipe).starts_with("ferry::Pipe(stages=2, microbatches=2)(\n  (0): torch::nn::Lin"));
}

// Whoever trains a module need not know that it is a pipe.
TEST(PipeModuleTest, ATrainingLoopForModulesTrainsIt) {
  Pipe pipe = pipe_of(layers(1));
  torch::optim::SGD optimizer(pipe->parameters(), torch::optim::SGDOptions(0.1));
  Pipe same = pipe;
  same.step(batch(4).to(torch::kFloat), torch::ones({4, 2}),
            [](const Tensor& y, const Tensor& t) { return ((y - t) * (y - t)).sum(); });
  const Tensor weight = pipe->named_parameters()["2.weight"];
  const Tensor before = weight.detach().clone();
  EXPECT_TRUE(weight.grad().defined());
  optimizer.step();
  EXPECT_FALSE(weight.equal(before));
  pipe->zero_grad();
  EXPECT_FALSE(weight.grad().defined());
}

TEST(PipeModuleTest, TrainAndEvalAreTheLayersAndTheCheckpointsToo) {
  int forwards = 0;
  Pipe pipe(torch::nn::Sequential(Scale(1, [&forwards] { ++forwards; })),
            PipeOptions().balance({1}).checkpoint(CheckpointMode::kAlways));
  const auto run = [&] {
    forwards = 0;
    pipe->forward(batch(2).requires_grad_()).sum().backward();
    return forwards;
  };
  EXPECT_EQ(run(), 2);
  pipe->eval();
  EXPECT_FALSE(pipe->layers()->is_training());
  EXPECT_FALSE(pipe->layers()[0]->is_training());
  EXPECT_EQ(run(), 1) << "nothing runs again in eval mode";
  pipe->train();
  EXPECT_EQ(run(), 2);
}

struct NormWithinImpl : torch::nn::Module {
  NormWithinImpl() {
    const auto options = torch::nn::BatchNormOptions(4).momentum({});  // the mean of all batches
    norm = register_module("norm", torch::nn::BatchNorm1d(options));
  }
  Tensor forward(const Tensor& x) { return norm(x.tanh()); }
  torch::nn::BatchNorm1d norm{nullptr};
};
TORCH_MODULE(NormWithin);

// A norm counts each micro-batch once, also in stages that run again.
TEST(PipeModuleTest, RunningStatisticsAreThoseOfALoop) {
  const auto norms = [] {
    torch::manual_seed(1);
    torch::nn::Sequential chain(
        torch::nn::Linear(3, 4), torch::nn::BatchNorm1d(4), NormWithin(),
        torch::nn::Unflatten(torch::nn::UnflattenOptions(1, {2, 2})),
        torch::nn::InstanceNorm1d(torch::nn::InstanceNorm1dOptions(2).track_running_stats(true)),
        torch::nn::Flatten());
    chain->to(torch::kFloat64);
    return chain;
  };
  for_all_options({1, 1, 1, 3}, 4, [&](const PipeOptions& options) {
    auto expected = norms();
    plain_step(expected, batch(8), torch::ones({8, 4}), 4);
    auto stepped = norms();
    Pipe(stepped, options).step(batch(8), torch::ones({8, 4}), sum_of);
    EXPECT_TRUE(same(stepped->buffers(), expected->buffers()));
    auto chain = norms();
    Pipe(chain, options).forward(batch(8)).sum().backward();
    EXPECT_TRUE(same(chain->buffers(), expected->buffers()));
    EXPECT_EQ(chain->buffers().size(), 9u);
  });
}

TEST(PipeModuleTest, AStateOfTheLayersIsOneOfThePipeAndBack) {
  const auto chain = layers(1), other = layers(2), third = layers(3);
  Pipe pipe = pipe_of(chain), read = pipe_of(other);
  std::stringstream of_layers, of_pipe;
  torch::save(chain, of_layers);
  torch::load(read, of_layers);
  torch::save(read, of_pipe);
  torch::nn::Sequential back = third;
  torch::load(back, of_pipe);
  const auto expected = chain->named_parameters();
  for (const auto& parameter : third->named_parameters()) {
    EXPECT_TRUE(parameter.value().equal(expected[parameter.key()])) << parameter.key();
  }
}

// A stage that left its device would be computed with on two.
TEST(PipeModuleTest, LayersStayOnTheirStagesDevices) {
  Pipe pipe = pipe_of(layers(1));
  EXPECT_THROW(pipe->to(torch::kMeta), ValueError);
  EXPECT_THROW(pipe->to(torch::kCPU, torch::kDouble), ValueError);
  pipe->to(torch::kDouble);
  EXPECT_EQ(pipe->parameters()[0].dtype(), torch::kDouble);
}

}  // namespace
}  // namespace ferry
