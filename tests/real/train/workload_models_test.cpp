// The models are what they say, and they learn.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "real/train/gpt.h"
#include "real/train/llama.h"
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

TEST(LlamaTest, ShapesAndSize) {
  LlamaOptions options{.vocabulary = 300, .layers = 3, .width = 32, .heads = 4, .kv_heads = 2};
  options.hidden = 48;
  options.context = 16;
  Llama tied(options);
  const torch::Tensor tokens = torch::randint(256, {2, 10}, torch::kLong);
  EXPECT_EQ(tied->forward(tokens).sizes(), (std::vector<std::int64_t>{2, 10, 300}));
  // A block: queries and the way out, keys and values of half the width, the MLP, two norms.
  const std::int64_t block = 2 * 32 * 32 + 2 * 16 * 32 + 3 * 48 * 32 + 2 * 32;
  EXPECT_EQ(count(*tied), 300 * 32 + 3 * block + 32);
  EXPECT_EQ(tied->buffers().size(), 1u);  // one pair of rotary tables for all blocks
  options.untied = true;
  EXPECT_EQ(count(*Llama(options)), 2 * 300 * 32 + 3 * block + 32);
}

TEST(LlamaTest, NoTokenSeesALaterOne) {
  torch::manual_seed(1);
  Llama model(LlamaOptions{.layers = 2, .width = 32, .heads = 4, .kv_heads = 1, .context = 12});
  torch::Tensor tokens = torch::randint(256, {1, 12}, torch::kLong);
  const torch::Tensor before = model->forward(tokens);
  tokens[0][7] = (tokens[0][7] + 1) % 256;
  const torch::Tensor after = model->forward(tokens);
  EXPECT_TRUE(torch::equal(before.slice(1, 0, 7), after.slice(1, 0, 7)));
  EXPECT_FALSE(torch::equal(before.slice(1, 7), after.slice(1, 7)));
}

// Without positions the last token would not know where the others are, and this text and that one
// would say the same of it but for the rounding of sums. The weights are ten times as large as at
// the start, where attention hardly says anything yet.
TEST(LlamaTest, PositionsAreRotated) {
  torch::manual_seed(1);
  Llama model(LlamaOptions{.layers = 1, .width = 32, .heads = 2, .kv_heads = 2, .context = 12});
  const torch::NoGradGuard no_grad;
  for (const torch::Tensor& parameter : model->parameters()) {
    if (parameter.dim() == 2) torch::Tensor(parameter).mul_(10);
  }
  torch::Tensor near = torch::full({1, 12}, 65, torch::kLong);
  torch::Tensor far = near.clone();
  near[0][10] = 66;
  far[0][0] = 66;
  const auto last = [&](const torch::Tensor& tokens) { return model->forward(tokens)[0][-1]; };
  EXPECT_GT((last(near) - last(far)).abs().max().item<float>(), 0.1F);
}

// With a head of keys for each of queries, repeating a shared one gives the shared form.
TEST(LlamaTest, HeadsOfQueriesShareOneOfKeys) {
  LlamaOptions options{.layers = 1, .width = 32, .heads = 4, .kv_heads = 2, .context = 8};
  Llama shared(options);
  options.kv_heads = 4;
  Llama whole(options);
  const torch::NoGradGuard no_grad;
  for (auto& parameter : whole->named_parameters()) {
    torch::Tensor from = shared->named_parameters()[parameter.key()];
    if (from.sizes() != parameter->sizes()) {  // keys and values: [2 heads * 8, 32]
      from = from.view({2, 8, 32}).repeat_interleave(2, 0).flatten(0, 1);
    }
    parameter->copy_(from);
  }
  const torch::Tensor tokens = torch::randint(256, {2, 8}, torch::kLong);
  EXPECT_TRUE(torch::allclose(shared->forward(tokens), whole->forward(tokens), 1e-4, 1e-6));
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

TEST(WorkloadTest, ALlamaLearns) {
  const test::Folder folder;
  Options options;
  options.model = Model::kLlama;
  options.llama = {
      .layers = 1, .width = 32, .heads = 4, .kv_heads = 2, .hidden = 64, .context = 32};
  options.batch = 4;
  options.data = folder.text();
  options.learning_rate = 1e-2;
  options.steps = 5;
  const float before = loss_after(options);
  EXPECT_GT(before, 3.0F);
  options.steps = 80;
  EXPECT_LT(loss_after(options), before / 2);
  options.dtype = torch::kBFloat16;
  EXPECT_LT(loss_after(options), before / 2);
}

TEST(WorkloadTest, ADtypeIsThatOfWeightsAndTables) {
  const test::Folder folder;
  for (const Model model : {Model::kGpt, Model::kLlama}) {
    Options options;
    options.model = model;
    options.gpt = {.layers = 1, .width = 32, .heads = 2, .context = 16};
    options.llama = {.layers = 1, .width = 32, .heads = 2, .kv_heads = 1, .context = 16};
    options.data = folder.text();
    options.dtype = torch::kBFloat16;
    const auto workload = make_workload(options);
    for (const torch::Tensor& parameter : workload->module().parameters()) {
      EXPECT_EQ(parameter.scalar_type(), torch::kBFloat16);
    }
    for (const torch::Tensor& buffer : workload->module().buffers()) {
      EXPECT_EQ(buffer.scalar_type(), torch::kBFloat16);
    }
    EXPECT_EQ(workload->loss(workload->batch(0)).scalar_type(), torch::kFloat);
  }
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
