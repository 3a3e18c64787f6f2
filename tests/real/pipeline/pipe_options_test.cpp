// What a pipeline refuses, and what balances propose.
#include <chrono>

#include "real/pipeline/balance.h"
#include "tests/real/api/message.h"
#include "tests/real/pipeline/rig.h"

namespace ferry {
namespace {

torch::nn::Sequential scales(int count) {
  torch::nn::Sequential layers;
  for (int i = 0; i < count; ++i) layers->push_back(Scale(i));
  return layers;
}

std::string refused(torch::nn::Sequential layers, const PipeOptions& options) {
  EXPECT_THROW(Pipe(layers, options), ValueError);
  const std::string text = message([&] { Pipe(layers, options); });
  const std::string prefix = "ferry::Pipe: ";
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

TEST(PipeOptionsTest, Balance) {
  auto three = scales(3);
  EXPECT_EQ(refused(three, {}).substr(0, 29), "expected PipeOptions::balance");
  EXPECT_EQ(refused(three, PipeOptions().balance({1, 1})),
            "module and sum of balance have different length (module: 3, sum of balance: 2)");
  EXPECT_EQ(refused(three, PipeOptions().balance({4})),
            "module and sum of balance have different length (module: 3, sum of balance: 4)");
  EXPECT_EQ(refused(three, PipeOptions().balance({0, 3})),
            "expected a balance of at least 1 layer for each stage, found 0");
}

TEST(PipeOptionsTest, DevicesAndChunks) {
  auto three = scales(3);
  const auto options = PipeOptions().balance({1, 2});
  EXPECT_EQ(refused(three, PipeOptions(options).devices({torch::kCPU})),
            "too few devices to hold given partitions (devices: 1, expected: 2)");
  EXPECT_EQ(refused(three, PipeOptions(options).microbatches(0)),
            "number of micro-batches must be a positive integer, found 0");
  const std::vector<torch::Device> many(5, torch::kCPU);
  EXPECT_EQ(Pipe(three, PipeOptions(options).devices(many)).devices().size(), 2u)
      << "extra devices are dropped";
}

TEST(PipeOptionsTest, Schedules) {
  auto four = scales(4);
  const auto options = PipeOptions().balance({1, 1, 1, 1});
  EXPECT_EQ(refused(four, PipeOptions(options).stages_per_device(2)),
            "1f1b: expected one stage on each device");
  EXPECT_EQ(refused(four, PipeOptions(options).stages_per_device(3)),
            "expected stages that divide by stages_per_device, found 4 for 3");
  EXPECT_EQ(refused(four, PipeOptions(options)
                              .schedule(ScheduleKind::kInterleaved)
                              .stages_per_device(2)
                              .microbatches(3)),
            "interleaved: expected micro-batches that divide by the devices, found 3 for 2");
}

TEST(PipeOptionsTest, WhatTwoStagesShare) {
  Scale one(1);
  Scale tied(2);
  tied->w = tied->register_parameter("tied", one->w);
  torch::nn::Sequential layers(one, Scale(0), tied);
  EXPECT_EQ(
      refused(layers, PipeOptions().balance({2, 1})),
      "'0.w' and '2.tied' are one parameter, in stages 0 and 1: their threads would add to its "
      "gradient in no order. Stash it in the first stage and pop it in the other "
      "(ferry/skip.h)");
  Pipe(layers, PipeOptions().balance({3}));  // within one stage it may be
  torch::nn::ReLU relu;
  EXPECT_EQ(refused(torch::nn::Sequential(relu, Scale(0), relu), PipeOptions().balance({1, 2})),
            "'0' and '2' are one module, in stages 0 and 1: expected a module for each");
}

TEST(PipeOptionsTest, Inputs) {
  auto two = scales(2);
  Pipe pipe(two, PipeOptions().balance({1, 1}).microbatches(2));
  const auto says = [](const std::function<void()>& call, const std::string& part) {
    const std::string text = message(call);
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  says([&] { pipe.forward(Tensor()); }, "expected a tensor as inputs");
  says([&] { pipe.forward(torch::zeros({})); }, "with a batch's dimension");
  says([&] { pipe.forward(Tensors{batch(2), batch(4)}); }, "one batch size, found 2 and 4");
  says([&] { pipe.step(batch(4), batch(1), sum_of); }, "these are 2 micro-batches, those 1");
  says([&] { pipe.step(batch(4), batch(4), [](const Tensor& y, const Tensor&) { return y; }); },
       "expected a loss that is a scalar");
  says([&] { pipe.forward(Tensors{batch(2), batch(2)}); }, "Expected argument #0");
  Pipe empty{torch::nn::Sequential(), PipeOptions()};
  EXPECT_TRUE(same({empty.forward(batch(2))}, {batch(2)}));
}

TEST(BalanceTest, BySize) {
  torch::nn::Sequential layers(torch::nn::Linear(8, 8), torch::nn::Tanh(),
                               torch::nn::Linear(8, 200), torch::nn::Linear(200, 8));
  const Tensor sample = torch::rand({4, 8});
  EXPECT_EQ(balance_by_size(layers, 2, sample), (std::vector<std::int64_t>{3, 1}));
  EXPECT_EQ(balance_by_size(layers, 4, sample), (std::vector<std::int64_t>{1, 1, 1, 1}));
  EXPECT_THROW(balance_by_size(layers, 5, sample), ValueError);
  EXPECT_THROW(balance_by_size(layers, 0, sample), ValueError);
  for (const Tensor& parameter : layers->parameters()) EXPECT_FALSE(parameter.grad().defined());
}

TEST(BalanceTest, ByTimeAndWhatIsMeasuredIsAsBefore) {
  torch::nn::BatchNorm1d norm(16);
  std::chrono::nanoseconds now(0);  // the clock: only this layer takes time
  torch::nn::Functional slow([&now](const Tensor& x) {
    now += std::chrono::seconds(1);
    return x * 2;
  });
  torch::nn::Sequential layers(torch::nn::Linear(16, 16), norm, torch::nn::Linear(16, 16), slow);
  const Tensor sample = torch::rand({64, 16});
  layers->forward(sample).sum().backward();
  const Tensors before = gradients(layers);
  const Tensor mean = norm->running_mean.clone();
  torch::manual_seed(3);
  const Tensor random = torch::rand({2});
  torch::manual_seed(3);
  EXPECT_EQ(real::balance_by_clock(layers, 2, sample, {}, [&now] { return now; }),
            (std::vector<std::int64_t>{3, 1}));
  EXPECT_TRUE(same({torch::rand({2})}, {random}));
  EXPECT_TRUE(same(gradients(layers), before));
  EXPECT_TRUE(same({norm->running_mean}, {mean}));
}

struct WatchingImpl : torch::nn::Module {
  Tensor forward(const Tensor& x) {
    trained = trained && is_training();
    return x * 2;
  }
  bool trained = true;
};
TORCH_MODULE(Watching);

// A model that was just evaluated was balanced for evaluation: its dropout cost nothing.
TEST(BalanceTest, LayersAreMeasuredInTrainModeAndKeepTheirOwn) {
  Watching one, other;
  torch::nn::Sequential layers(one, other);
  layers->eval();
  other->train();
  const Tensor sample = torch::rand({4, 8}, torch::requires_grad());
  balance_by_time(layers, 2, sample, {});
  balance_by_size(layers, 2, sample);
  EXPECT_TRUE(one->trained && other->trained);
  EXPECT_FALSE(layers->is_training());
  EXPECT_FALSE(one->is_training());
  EXPECT_TRUE(other->is_training());
}

TEST(BalanceTest, LayersWithSkipTensors) {
  auto layers = torch::nn::Sequential(
      layer({"a"}, {},
            [](LayerImpl& self, const Tensor& x) {
              self.put("a", x * self.w);
              return x;
            }),
      layer({}, {"a"}, [](LayerImpl& self, const Tensor& x) { return x * self.take("a"); }));
  EXPECT_EQ(balance_by_time(layers, 2, batch(4), {}), (std::vector<std::int64_t>{1, 1}));
  EXPECT_EQ(balance_by_size(layers, 2, batch(4)), (std::vector<std::int64_t>{1, 1}));
}

}  // namespace
}  // namespace ferry
