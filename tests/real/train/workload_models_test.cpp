// The models are what they say, and they learn.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "real/train/gpt.h"
#include "real/train/resnet.h"
#include "real/train/workload.h"
#include "tests/real/train/child.h"

namespace ferry::real::train {
namespace {

std::int64_t count(const torch::nn::Module& module) {
  std::int64_t elements = 0;
  for (const torch::Tensor& parameter : module.parameters()) elements += parameter.numel();
  return elements;
}

TEST(GptTest, ShapesAndSize) {
  Gpt model(GptOptions{.layers = 3, .width = 32, .heads = 4, .context = 16});
  const torch::Tensor tokens = torch::randint(256, {2, 10}, torch::kLong);
  EXPECT_EQ(model->forward(tokens).sizes(), (std::vector<std::int64_t>{2, 10, 256}));
  // Tied head: the embedding counts once. A block: 12 w^2 of weights, 9 w of biases, 4 w of norms.
  EXPECT_EQ(count(*model), (256 + 16) * 32 + 3 * (12 * 32 * 32 + 13 * 32) + 2 * 32);
}

TEST(GptTest, NoTokenSeesALaterOne) {
  torch::manual_seed(1);
  Gpt model(GptOptions{.layers = 2, .width = 32, .heads = 2, .context = 12});
  torch::Tensor tokens = torch::randint(256, {1, 12}, torch::kLong);
  const torch::Tensor before = model->forward(tokens);
  tokens[0][7] = (tokens[0][7] + 1) % 256;
  const torch::Tensor after = model->forward(tokens);
  EXPECT_TRUE(torch::equal(before.slice(1, 0, 7), after.slice(1, 0, 7)));
  EXPECT_FALSE(torch::equal(before.slice(1, 7), after.slice(1, 7)));
}

TEST(GptTest, DropoutDropsInTrainingOnly) {
  torch::manual_seed(1);
  Gpt model(GptOptions{.layers = 1, .width = 32, .heads = 2, .context = 8, .dropout = 0.3});
  const torch::Tensor tokens = torch::randint(256, {1, 8}, torch::kLong);
  EXPECT_FALSE(torch::equal(model->forward(tokens), model->forward(tokens)));
  model->eval();
  EXPECT_TRUE(torch::equal(model->forward(tokens), model->forward(tokens)));
}

TEST(ResnetTest, ShapesSizeAndBuffers) {
  Resnet model(ResnetOptions{.layers = 2, .width = 8});
  EXPECT_EQ(model->forward(torch::rand({2, 3, 32, 32})).sizes(),
            (std::vector<std::int64_t>{2, 10}));
  // 6n + 2 weighted layers and two shortcuts, each convolution with its norm.
  std::int64_t convolutions = 0;
  for (const auto& each : model->modules()) {
    convolutions += std::dynamic_pointer_cast<torch::nn::Conv2dImpl>(each) != nullptr;
  }
  EXPECT_EQ(convolutions, 6 * 2 + 1 + 2);
  EXPECT_EQ(model->buffers().size(), 3u * 15);  // mean, variance, count
}

// The mean of the last five losses, after so many steps.
float loss_after(const Options& options) {
  const auto workload = make_workload(options);
  torch::optim::AdamW optimizer(workload->module().parameters(),
                                torch::optim::AdamWOptions(options.learning_rate));
  float sum = 0;
  for (std::int64_t step = 0; step < options.steps; ++step) {
    torch::Tensor loss = workload->loss(workload->batch(step));
    loss.backward();
    optimizer.step();
    optimizer.zero_grad();
    if (step >= options.steps - 5) sum += loss.item<float>() / 5;
  }
  return sum;
}

TEST(WorkloadTest, AGptLearns) {
  const test::Folder folder;
  Options options;
  options.gpt = {.layers = 1, .width = 32, .heads = 2, .context = 32};
  options.batch = 4;
  options.data = folder.text();
  options.learning_rate = 1e-2;
  options.steps = 5;
  const float before = loss_after(options);
  EXPECT_GT(before, 3.0F);  // a uniform guess: ln 256 = 5.5
  options.steps = 80;
  EXPECT_LT(loss_after(options), before / 2);
}

TEST(WorkloadTest, AResnetLearns) {
  Options options;
  options.model = Model::kResnet;
  options.resnet = {.layers = 1, .width = 8};
  options.batch = 32;
  options.images = 500;
  options.learning_rate = 1e-2;
  options.steps = 80;
  EXPECT_LT(loss_after(options), 1.0F);  // a uniform guess: ln 10 = 2.3
}

}  // namespace
}  // namespace ferry::real::train
