// A Llama in LibTorch: from tokens to logits, after Llama 3 (Grattafiori et al., "The Llama 3 Herd
// of Models", 2024).
//
// It has pre-norm blocks without biases: RMSNorm, causal attention in which several heads of
// queries share one head of keys and values, rotary positions, and a SwiGLU MLP. The head is tied
// to the embedding or has weights of its own. Weights start normally distributed with deviation
// 0.02, norms at one.
//
// The rotary tables are one buffer of the model, which all blocks read. They are computed in
// float32 and then cast with the module, as in the published models. Llama 3.1 and later scale the
// rotary frequencies to see more than 8192 tokens; this model does not.
#pragma once

#include <torch/nn.h>

#include <cstdint>
#include <vector>

#include "real/train/segment.h"

namespace ferry::real::train {

struct LlamaOptions {
  std::int64_t vocabulary = 256;
  std::int64_t layers = 4;
  std::int64_t width = 128;  // a multiple of twice the heads
  std::int64_t heads = 4;    // heads of queries; a multiple of kv_heads
  std::int64_t kv_heads = 2;
  std::int64_t hidden = 384;  // width of the MLP's hidden layer
  std::int64_t context = 128;
  bool untied = false;                   // the head has weights of its own
  Segments segments = Segments::kPlain;  // which blocks are checkpoints
};

class LlamaBlockImpl : public torch::nn::Module {
 public:
  // `rotary` is float [2, context, width / heads / 2]: the cosines and the sines.
  LlamaBlockImpl(const LlamaOptions& options, torch::Tensor rotary);
  torch::Tensor forward(torch::Tensor x);  // takes [batch, time, width], returns the same shape

 private:
  torch::Tensor attend(const torch::Tensor& x) const;
  torch::Tensor rotated(const torch::Tensor& x) const;  // [batch, heads, time, width / heads]

  std::int64_t heads_;
  std::int64_t kv_heads_;
  torch::Tensor rotary_;  // the model's buffer, which moves with the model
  torch::Tensor attention_norm_;
  torch::Tensor queries_;
  torch::Tensor keys_;
  torch::Tensor values_;
  torch::Tensor attention_out_;
  torch::Tensor mlp_norm_;
  torch::Tensor gate_;
  torch::Tensor up_;
  torch::Tensor down_;
};
TORCH_MODULE(LlamaBlock);

class LlamaImpl : public torch::nn::Module {
 public:
  // Initialises the weights with LibTorch's generator.
  explicit LlamaImpl(const LlamaOptions& options);

  // Takes int64 [batch, time <= context], returns [batch, time, vocabulary] in the weights' dtype.
  torch::Tensor forward(const torch::Tensor& tokens);

 private:
  Segments segments_;
  torch::Tensor tokens_;
  std::vector<LlamaBlock> blocks_;
  torch::Tensor norm_;
  torch::Tensor head_;  // the embedding's if tied
};
TORCH_MODULE(Llama);

}  // namespace ferry::real::train
