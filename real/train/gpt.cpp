#include "real/train/gpt.h"

#include <cmath>
#include <string>
#include <utility>

#include "ferry/skip.h"

namespace ferry::real::train {

namespace nn = torch::nn;
namespace F = torch::nn::functional;

namespace {

constexpr double kDeviation = 0.02;  // that of GPT-2

nn::Linear linear(std::int64_t in, std::int64_t out, double deviation) {
  nn::Linear layer(in, out);
  nn::init::normal_(layer->weight, 0, deviation);
  nn::init::zeros_(layer->bias);
  return layer;
}

nn::Embedding embedding(std::int64_t count, std::int64_t width) {
  nn::Embedding layer(count, width);
  nn::init::normal_(layer->weight, 0, kDeviation);
  return layer;
}

nn::LayerNorm norm(std::int64_t width) { return nn::LayerNorm(nn::LayerNormOptions({width})); }

torch::Tensor embed(nn::Embedding& words, nn::Embedding& positions, const torch::Tensor& tokens) {
  return words->forward(tokens) + positions->weight.slice(0, 0, tokens.size(1)).unsqueeze(0);
}

// The layers of the chain. They hold modules of the model.

class EntryImpl : public nn::Module, public SkipLayer {
 public:
  EntryImpl(nn::Embedding words, nn::Embedding positions)
      : SkipLayer({"embedding"}, {}),
        words_(register_module("tokens", std::move(words))),
        positions_(register_module("positions", std::move(positions))) {}
  torch::Tensor forward(const torch::Tensor& tokens) {
    stash("embedding", words_->weight);
    return embed(words_, positions_, tokens);
  }

 private:
  nn::Embedding words_;
  nn::Embedding positions_;
};
TORCH_MODULE(Entry);

class LinkImpl : public nn::Module {
 public:
  LinkImpl(GptBlock block, Segments segments, std::size_t ordinal)
      : block_(register_module("block", std::move(block))),
        segments_(segments),
        ordinal_(ordinal) {}
  torch::Tensor forward(torch::Tensor x) {
    return run_block(segments_, ordinal_, block_, std::move(x));
  }

 private:
  GptBlock block_;
  const Segments segments_;
  const std::size_t ordinal_;
};
TORCH_MODULE(Link);

class HeadImpl : public nn::Module, public SkipLayer {
 public:
  explicit HeadImpl(nn::LayerNorm norm)
      : SkipLayer({}, {"embedding"}), norm_(register_module("norm", std::move(norm))) {}
  torch::Tensor forward(const torch::Tensor& x) {
    return F::linear(norm_->forward(x), pop("embedding"));
  }

 private:
  nn::LayerNorm norm_;
};
TORCH_MODULE(Head);

}  // namespace

GptBlockImpl::GptBlockImpl(const GptOptions& options)
    : heads_(options.heads), dropout_(options.dropout) {
  const std::int64_t width = options.width;
  const double last = kDeviation / std::sqrt(2.0 * static_cast<double>(options.layers));
  attention_norm_ = register_module("attention_norm", norm(width));
  queries_keys_values_ =
      register_module("queries_keys_values", linear(width, 3 * width, kDeviation));
  attention_out_ = register_module("attention_out", linear(width, width, last));
  mlp_norm_ = register_module("mlp_norm", norm(width));
  mlp_in_ = register_module("mlp_in", linear(width, 4 * width, kDeviation));
  mlp_out_ = register_module("mlp_out", linear(4 * width, width, last));
}

torch::Tensor GptBlockImpl::attend(const torch::Tensor& x) {
  const std::int64_t batch = x.size(0);
  const std::int64_t time = x.size(1);
  const std::int64_t width = x.size(2);
  const std::vector<torch::Tensor> parts = queries_keys_values_->forward(x).chunk(3, -1);
  const auto by_head = [&](const torch::Tensor& part) {
    return part.view({batch, time, heads_, width / heads_}).transpose(1, 2);
  };
  const torch::Tensor mixed = at::scaled_dot_product_attention(
      by_head(parts[0]), by_head(parts[1]), by_head(parts[2]), /*attn_mask=*/{},
      is_training() ? dropout_ : 0.0, /*is_causal=*/true);
  return attention_out_->forward(mixed.transpose(1, 2).reshape({batch, time, width}));
}

torch::Tensor GptBlockImpl::forward(torch::Tensor x) {
  const auto drop = [this](const torch::Tensor& y) {
    return dropout_ > 0 ? torch::dropout(y, dropout_, is_training()) : y;
  };
  x = x + drop(attend(attention_norm_->forward(x)));
  return x + drop(mlp_out_->forward(torch::gelu(mlp_in_->forward(mlp_norm_->forward(x)))));
}

GptImpl::GptImpl(const GptOptions& options)
    : dropout_(options.dropout), segments_(options.segments) {
  tokens_ = register_module("tokens", embedding(options.vocabulary, options.width));
  positions_ = register_module("positions", embedding(options.context, options.width));
  for (std::int64_t layer = 0; layer < options.layers; ++layer) {
    blocks_.push_back(register_module("block" + std::to_string(layer), GptBlock(options)));
  }
  norm_ = register_module("norm", norm(options.width));
}

torch::Tensor GptImpl::forward(const torch::Tensor& tokens) {
  torch::Tensor x = embed(tokens_, positions_, tokens);
  if (dropout_ > 0) x = torch::dropout(x, dropout_, is_training());
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    x = run_block(segments_, i, blocks_[i], std::move(x));
  }
  return F::linear(norm_->forward(x), tokens_->weight);
}

nn::Sequential GptImpl::chain() const {
  nn::Sequential chain(Entry(tokens_, positions_));
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    chain->push_back(Link(blocks_[i], segments_, i));
  }
  chain->push_back(Head(norm_));
  return chain;
}

}  // namespace ferry::real::train
