// A preset is the published shape, and what is typed beside it wins.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "real/train/options.h"
#include "tests/real/train/child.h"

namespace ferry::real::train {
namespace {

// Embeddings; 12 w^2 of weights, 9 w of biases and 4 w of norms in a block; the last norm.
std::int64_t count(const GptOptions& gpt) {
  const std::int64_t w = gpt.width;
  return (gpt.vocabulary + gpt.context) * w + gpt.layers * (12 * w * w + 13 * w) + 2 * w;
}

std::int64_t count(const LlamaOptions& llama) {
  const std::int64_t w = llama.width;
  const std::int64_t shared = w / llama.heads * llama.kv_heads;
  const std::int64_t block = 2 * w * w + 2 * shared * w + 3 * llama.hidden * w + 2 * w;
  return (llama.untied ? 2 : 1) * llama.vocabulary * w + llama.layers * block + w;
}

// As their publishers count them.
TEST(ModelOptionsTest, PresetsHaveThePublishedSizes) {
  EXPECT_EQ(count(test::parse("gpt --preset gpt2").gpt), 124'439'808);
  EXPECT_EQ(count(test::parse("gpt --preset gpt2-medium").gpt), 354'823'168);
  EXPECT_EQ(count(test::parse("llama --preset llama-1b").llama), 1'235'814'400);
}

TEST(ModelOptionsTest, WhatIsTypedBesideAPresetWins) {
  const Options gpt = test::parse("gpt --layers 2 --preset gpt2 --context 64");
  EXPECT_EQ(gpt.gpt.layers, 2);
  EXPECT_EQ(gpt.gpt.context, 64);
  EXPECT_EQ(gpt.gpt.width, 768);
  EXPECT_EQ(gpt.gpt.vocabulary, 50257);
  const Options llama =
      test::parse("llama --preset llama-1b --kv-heads 4 --untied --vocabulary 1000");
  EXPECT_EQ(llama.llama.kv_heads, 4);
  EXPECT_TRUE(llama.llama.untied);
  EXPECT_EQ(llama.llama.vocabulary, 1000);
  EXPECT_EQ(llama.llama.hidden, 8192);
  // Even where it is the default's value.
  EXPECT_EQ(test::parse("llama --preset llama-1b --layers 4").llama.layers, 4);
}

TEST(ModelOptionsTest, WithoutAPresetTheModelIsSmall) {
  EXPECT_EQ(test::parse("gpt").gpt.vocabulary, 256);
  EXPECT_EQ(test::parse("gpt").dtype, torch::kFloat);
  EXPECT_EQ(test::parse("llama --dtype bf16").dtype, torch::kBFloat16);
  EXPECT_FALSE(test::parse("llama").llama.untied);
}

}  // namespace
}  // namespace ferry::real::train
