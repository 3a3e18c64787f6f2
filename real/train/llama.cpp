#include "real/train/llama.h"

#include <string>
#include <utility>

namespace ferry::real::train {

namespace F = torch::nn::functional;

namespace {

constexpr double kDeviation = 0.02;
constexpr double kEpsilon = 1e-5;    // of the norms
constexpr double kRotaryBase = 5e5;  // that of Llama 3

// Initialises a weight once. (A Linear would initialise it twice: seconds for a billion weights.)
torch::Tensor weight(std::int64_t rows, std::int64_t columns) {
  return torch::empty({rows, columns}).normal_(0, kDeviation);
}

torch::Tensor norm(const torch::Tensor& x, const torch::Tensor& weight) {
  return at::rms_norm(x, {x.size(-1)}, weight, kEpsilon);
}

torch::Tensor rotary_tables(std::int64_t context, std::int64_t head_width) {
  const torch::Tensor exponents = torch::arange(0, head_width, 2, torch::kFloat) / head_width;
  const torch::Tensor frequencies = torch::pow(kRotaryBase, -exponents);
  const torch::Tensor angles = torch::outer(torch::arange(context, torch::kFloat), frequencies);
  return torch::stack({angles.cos(), angles.sin()});
}

// Repeats each head of keys or values for all heads of queries that share it.
torch::Tensor repeated(const torch::Tensor& x, std::int64_t times) {
  return x.unsqueeze(2).expand({-1, -1, times, -1, -1}).flatten(1, 2);
}

}  // namespace

LlamaBlockImpl::LlamaBlockImpl(const LlamaOptions& options, torch::Tensor rotary)
    : heads_(options.heads), kv_heads_(options.kv_heads), rotary_(std::move(rotary)) {
  const std::int64_t width = options.width;
  const std::int64_t shared = width / heads_ * kv_heads_;
  attention_norm_ = register_parameter("attention_norm", torch::ones({width}));
  queries_ = register_parameter("queries", weight(width, width));
  keys_ = register_parameter("keys", weight(shared, width));
  values_ = register_parameter("values", weight(shared, width));
  attention_out_ = register_parameter("attention_out", weight(width, width));
  mlp_norm_ = register_parameter("mlp_norm", torch::ones({width}));
  gate_ = register_parameter("gate", weight(options.hidden, width));
  up_ = register_parameter("up", weight(options.hidden, width));
  down_ = register_parameter("down", weight(width, options.hidden));
}

// The first half of a head has the first numbers of the pairs, the second half the second ones.
torch::Tensor LlamaBlockImpl::rotated(const torch::Tensor& x) const {
  const torch::Tensor cosines = rotary_[0].slice(0, 0, x.size(2));
  const torch::Tensor sines = rotary_[1].slice(0, 0, x.size(2));
  const std::vector<torch::Tensor> pair = x.chunk(2, -1);
  return torch::cat({pair[0] * cosines - pair[1] * sines, pair[1] * cosines + pair[0] * sines}, -1);
}

torch::Tensor LlamaBlockImpl::attend(const torch::Tensor& x) const {
  const std::int64_t batch = x.size(0);
  const std::int64_t time = x.size(1);
  const auto by_head = [&](const torch::Tensor& weight, std::int64_t heads) {
    return F::linear(x, weight).view({batch, time, heads, -1}).transpose(1, 2);
  };
  const torch::Tensor queries = rotated(by_head(queries_, heads_));
  torch::Tensor keys = rotated(by_head(keys_, kv_heads_));
  torch::Tensor values = by_head(values_, kv_heads_);
  // LibTorch's kernels accept fewer heads of keys, except for float32 on CUDA. There LibTorch would
  // fall back to a kernel that keeps the whole matrix of every head.
  const bool repeat = kv_heads_ != heads_ && x.is_cuda() && x.scalar_type() == torch::kFloat;
  if (repeat) {
    keys = repeated(keys, heads_ / kv_heads_);
    values = repeated(values, heads_ / kv_heads_);
  }
  const torch::Tensor mixed = at::scaled_dot_product_attention(
      queries, keys, values, /*attn_mask=*/{}, /*dropout_p=*/0.0, /*is_causal=*/true,
      /*scale=*/{}, /*enable_gqa=*/kv_heads_ != heads_ && !repeat);
  return F::linear(mixed.transpose(1, 2).reshape({batch, time, -1}), attention_out_);
}

torch::Tensor LlamaBlockImpl::forward(torch::Tensor x) {
  x = x + attend(norm(x, attention_norm_));
  const torch::Tensor inner = norm(x, mlp_norm_);
  return x + F::linear(torch::silu(F::linear(inner, gate_)) * F::linear(inner, up_), down_);
}

LlamaImpl::LlamaImpl(const LlamaOptions& options) : segments_(options.segments) {
  tokens_ = register_parameter("tokens", weight(options.vocabulary, options.width));
  const torch::Tensor rotary =
      register_buffer("rotary", rotary_tables(options.context, options.width / options.heads));
  for (std::int64_t layer = 0; layer < options.layers; ++layer) {
    blocks_.push_back(
        register_module("block" + std::to_string(layer), LlamaBlock(options, rotary)));
  }
  norm_ = register_parameter("norm", torch::ones({options.width}));
  head_ = tokens_;
  if (options.untied) {
    head_ = register_parameter("head", weight(options.vocabulary, options.width));
  }
}

torch::Tensor LlamaImpl::forward(const torch::Tensor& tokens) {
  torch::Tensor x = torch::embedding(tokens_, tokens);
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    x = run_block(segments_, i, blocks_[i], std::move(x));
  }
  return F::linear(norm(x, norm_), head_);
}

}  // namespace ferry::real::train
