// A GPT in LibTorch, after GPT-2 (Radford et al., 2019): from tokens to logits. `ferry train gpt`
// trains it (workload.cpp), and gpt_pipe.h makes a pipeline of its chain.
//
// It has pre-norm blocks with causal attention (at::scaled_dot_product_attention, one projection
// for queries, keys and values) and a GELU MLP of four times the width, and learned positions. The
// head is tied to the embedding, so the embedding's weight gets two gradients. In each block, the
// last projections of attention and of the MLP start smaller by 1/sqrt(2 layers).
//
// It has no loss and loads no weights. It does not check its options or its input;
// model_options.cpp checks that the heads divide the width.
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
  Segments segments = Segments::kPlain;  // which blocks are checkpoints
};

class GptBlockImpl : public torch::nn::Module {
 public:
  explicit GptBlockImpl(const GptOptions& options);
  torch::Tensor forward(torch::Tensor x);  // takes [batch, time, width], returns the same shape

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
  // Initialises the weights with LibTorch's generator.
  explicit GptImpl(const GptOptions& options);

  // Takes int64 [batch, time <= context], returns float32 [batch, time, vocabulary].
  torch::Tensor forward(const torch::Tensor& tokens);

  // Returns the model as a chain for a pipeline: the embeddings, the blocks and the head, with the
  // same parameters. A skip tensor carries the embedding's weight to the head. It has no dropout.
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
