// A GPT in LibTorch: tokens to logits, after GPT-2 (Radford et al., 2019).
//
// Pre-norm blocks of causal attention (at::scaled_dot_product_attention, one projection for
// queries, keys and values) and a GELU MLP of four times the width; learned positions; the head is
// tied to the embedding, so the embedding's weight gets two gradients. Projections that end a block
// start smaller by 1/sqrt(2 layers).
#pragma once

#include <torch/nn.h>

#include <cstdint>
#include <vector>

#include "real/train/segment.h"

namespace ferry::real::train {

struct GptOptions {
  std::int64_t vocabulary = 256;
  std::int64_t layers = 4;
  std::int64_t width = 128;  // a multiple of heads
  std::int64_t heads = 4;
  std::int64_t context = 128;
  double dropout = 0;
  Segments segments = Segments::kPlain;  // how its blocks run
};

class GptBlockImpl : public torch::nn::Module {
 public:
  explicit GptBlockImpl(const GptOptions& options);
  torch::Tensor forward(torch::Tensor x);  // Takes [batch, time, width] and returns the same shape.

 private:
  torch::Tensor attend(const torch::Tensor& x);

  std::int64_t heads_;
  double dropout_;
  torch::nn::LayerNorm attention_norm_{nullptr};
  torch::nn::Linear queries_keys_values_{nullptr};
  torch::nn::Linear attention_out_{nullptr};
  torch::nn::LayerNorm mlp_norm_{nullptr};
  torch::nn::Linear mlp_in_{nullptr};
  torch::nn::Linear mlp_out_{nullptr};
};
TORCH_MODULE(GptBlock);

class GptImpl : public torch::nn::Module {
 public:
  // Draws the weights from LibTorch's generator.
  explicit GptImpl(const GptOptions& options);

  // Takes int64 [batch, time <= context], returns float32 [batch, time, vocabulary].
  torch::Tensor forward(const torch::Tensor& tokens);

  // The same as a chain, for a pipeline: the embeddings, the blocks, and the head, with these very
  // parameters. The embedding's weight travels to the head as a skip tensor. Without dropout.
  torch::nn::Sequential chain() const;

 private:
  double dropout_;
  Segments segments_;
  torch::nn::Embedding tokens_{nullptr};
  torch::nn::Embedding positions_{nullptr};
  std::vector<GptBlock> blocks_;
  torch::nn::LayerNorm norm_{nullptr};
};
TORCH_MODULE(Gpt);

}  // namespace ferry::real::train
