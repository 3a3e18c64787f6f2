#include "vgpu/operators/attention.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <cmath>
#include <limits>
#include <optional>
#include <tuple>

namespace ferry::vgpu {
namespace {

using at::Tensor;
using torch::jit::Stack;

struct Attention {
  Tensor query;
  Tensor key;
  Tensor value;
  std::optional<Tensor> bias;
  double dropout = 0;
  bool causal = false;
  std::optional<double> scale;

  double factor() const {
    return scale.value_or(1 / std::sqrt(static_cast<double>(query.size(-1))));
  }
  // With grouped queries a head of keys and values serves several heads of queries.
  std::int64_t queries_of_a_key() const { return query.size(-3) / key.size(-3); }
  Tensor for_each_query(const Tensor& of_keys) const {
    const std::int64_t count = queries_of_a_key();
    return count == 1 ? of_keys : of_keys.repeat_interleave(count, -3);
  }
  Tensor sum_for_keys(const Tensor& of_queries) const {
    const std::int64_t count = queries_of_a_key();
    return count == 1 ? of_queries : of_queries.unflatten(-3, {key.size(-3), count}).sum(-3);
  }
  Tensor scores() const {
    Tensor scores = at::matmul(query, for_each_query(key).transpose(-2, -1)).mul_(factor());
    if (bias) scores.add_(*bias);
    if (causal) {
      const Tensor seen = at::ones({query.size(-2), key.size(-2)}, at::kBool).tril();
      scores.masked_fill_(seen.logical_not(), -std::numeric_limits<double>::infinity());
    }
    return scores;
  }
  // The dropout mask: 0 for a dropped element, 1 / (1 - dropout) for each other one.
  Tensor mask(const Tensor& like, std::int64_t seed) const {
    if (like.is_meta()) return at::empty_like(like);
    const auto generator = at::make_generator<at::CPUGeneratorImpl>(static_cast<uint64_t>(seed));
    return at::empty_like(like).bernoulli_(1 - dropout, generator).div_(1 - dropout);
  }
};

// Returns a random seed for this call, or 0 on Meta, where tensors have no values.
std::int64_t drawn_seed(const Tensor& query, const at::Generator& generator) {
  if (query.is_meta()) return 0;
  return at::randint(std::numeric_limits<std::int64_t>::max(), {}, generator, at::kLong)
      .item<std::int64_t>();
}

std::int64_t seed_of(const Tensor& saved) {
  return saved.is_meta() ? 0 : saved.item<std::int64_t>();
}

// Returns the tensor in the stride order of `like`, as the fused kernels make it.
Tensor laid_out(const Tensor& made, const Tensor& like) {
  const Tensor as_like = at::empty_like(like);
  return made.strides() == as_like.strides() ? made : as_like.copy_(made);
}

struct Made {
  Tensor output;
  Tensor logsumexp;
  std::int64_t seed = 0;  // the dropout's seed
};

Made forward(const Attention& call, const at::Generator& generator) {
  Made made;
  if (call.dropout > 0) {
    made.seed = drawn_seed(call.query, generator);
    const Tensor scores = call.scores();
    const Tensor weights = at::softmax(scores, -1);
    made.output = laid_out(
        at::matmul(weights * call.mask(weights, made.seed), call.for_each_query(call.value)),
        call.query);
    made.logsumexp = at::logsumexp(scores, -1).to(at::kFloat);
  } else {
    std::tie(made.output, made.logsumexp) = at::_scaled_dot_product_flash_attention_for_cpu(
        call.query, call.key, call.value, 0, call.causal, call.bias, call.scale);
    made.logsumexp = made.logsumexp.contiguous();  // contiguous, as on a GPU: plans name strides
  }
  return made;
}

struct Gradients {
  Tensor query, key, value, bias;  // no bias if it is not wanted
};

Gradients backward(const Attention& call, const Tensor& gradient, const Made& made,
                   bool wants_bias = false) {
  Gradients of;
  if (call.dropout == 0) {
    std::tie(of.query, of.key, of.value) = at::_scaled_dot_product_flash_attention_for_cpu_backward(
        gradient, call.query, call.key, call.value, made.output, made.logsumexp, 0, call.causal,
        call.bias, call.scale);
    if (!wants_bias) return of;
  }
  const Tensor weights = at::softmax(call.scores(), -1);
  const Tensor mask = call.dropout > 0 ? call.mask(weights, made.seed) : at::ones_like(weights);
  const Tensor value = call.for_each_query(call.value);
  const Tensor of_weights = at::matmul(gradient, value.transpose(-2, -1)) * mask;
  const Tensor of_scores = (of_weights - (of_weights * weights).sum({-1}, true)) * weights;
  if (wants_bias) of.bias = of_scores.sum_to_size(call.bias->sizes());
  if (call.dropout == 0) return of;
  const Tensor scaled = of_scores * call.factor();
  const Tensor of_keys = at::matmul(scaled.transpose(-2, -1), call.query);
  const Tensor of_values = at::matmul((weights * mask).transpose(-2, -1), gradient);
  of.query = at::matmul(scaled, call.for_each_query(call.key));
  of.key = call.sum_for_keys(of_keys);
  of.value = call.sum_for_keys(of_values);
  return of;
}

Stack laid_out(const Gradients& of, const Attention& call) {
  return {laid_out(of.query, call.query), laid_out(of.key, call.key),
          laid_out(of.value, call.value)};
}

std::optional<Tensor> given(const c10::IValue& tensor) {
  const auto value = tensor.toOptional<Tensor>();
  return value && value->defined() ? value : std::nullopt;
}

// Memory-efficient attention returns its output in rows of tokens. It pads logsumexp to whole tiles
// of 32 query rows, and returns an empty one if it is not wanted.
constexpr std::int64_t kRowsOfATile = 32;

Tensor by_tokens(const Tensor& output) {
  return output.transpose(1, 2).contiguous().transpose(1, 2);
}

Tensor in_tiles(const Tensor& logsumexp, bool wanted) {
  const std::int64_t rows = logsumexp.size(2);
  const std::int64_t whole = (rows + kRowsOfATile - 1) / kRowsOfATile * kRowsOfATile;
  Tensor tiles =
      at::zeros({logsumexp.size(0), logsumexp.size(1), wanted ? whole : 0}, logsumexp.options());
  if (wanted) tiles.narrow(2, 0, rows).copy_(logsumexp);
  return tiles;
}

}  // namespace

void efficient_attention(Stack& stack, const at::Generator& generator) {
  // Arguments: query, key, value, bias, wants logsumexp, dropout, causal, scale.
  const Attention call{
      stack[0].toTensor(), stack[1].toTensor(), stack[2].toTensor(),          given(stack[3]),
      stack[5].toDouble(), stack[6].toBool(),   stack[7].toOptional<double>()};
  const Made made = forward(call, generator);
  const bool wants_logsumexp = stack[4].toBool();
  stack = {by_tokens(made.output), in_tiles(made.logsumexp, wants_logsumexp),
           at::scalar_tensor(made.seed, at::kLong), at::zeros({}, at::kLong)};
}

void efficient_attention_backward(Stack& stack, const at::Generator&) {
  // Arguments: grad, query, key, value, bias, out, logsumexp, seed, offset, dropout, wanted,
  // causal, scale.
  const std::optional<Tensor> bias = given(stack[4]);
  const bool wants_bias = bias && stack[10].toBoolList()[3];
  const Attention call{
      stack[1].toTensor(), stack[2].toTensor(), stack[3].toTensor(),           bias,
      stack[9].toDouble(), stack[11].toBool(),  stack[12].toOptional<double>()};
  const Tensor logsumexp = stack[6].toTensor().narrow(2, 0, call.query.size(2));
  const Made made{stack[5].toTensor(), logsumexp, seed_of(stack[7].toTensor())};
  const Gradients of = backward(call, stack[0].toTensor(), made, wants_bias);
  stack = {by_tokens(of.query), by_tokens(of.key), by_tokens(of.value), of.bias};
}

void flash_attention(Stack& stack, const at::Generator& generator) {
  // Arguments: query, key, value, dropout, causal, wants the mask, scale.
  const Attention call{
      stack[0].toTensor(), stack[1].toTensor(), stack[2].toTensor(),          std::nullopt,
      stack[3].toDouble(), stack[4].toBool(),   stack[6].toOptional<double>()};
  const Made made = forward(call, generator);
  // One tensor has the seed and the offset; nobody uses the other tensor.
  const Tensor state = at::zeros({2}, at::kLong).fill_(made.seed).view(at::kUInt64);
  stack = {made.output,
           made.logsumexp,
           Tensor(),
           Tensor(),
           call.query.size(-2),
           call.key.size(-2),
           state,
           at::zeros({}, at::kLong).view(at::kUInt64),
           at::empty({0}, call.query.options())};
}

void flash_attention_backward(Stack& stack, const at::Generator&) {
  // Arguments: grad, query, key, value, out, logsumexp, four about sequences, dropout, causal,
  // state, an unused one, scale.
  const Attention call{
      stack[1].toTensor(),  stack[2].toTensor(), stack[3].toTensor(),           std::nullopt,
      stack[10].toDouble(), stack[11].toBool(),  stack[14].toOptional<double>()};
  const Made made{stack[4].toTensor(), stack[5].toTensor(),
                  seed_of(stack[12].toTensor().view(at::kLong)[0])};
  stack = laid_out(backward(call, stack[0].toTensor(), made), call);
}

void cudnn_attention(Stack& stack, const at::Generator& generator) {
  // Arguments: query, key, value, bias, wants logsumexp, dropout, causal, wants the mask, scale.
  const Attention call{
      stack[0].toTensor(), stack[1].toTensor(), stack[2].toTensor(),          given(stack[3]),
      stack[5].toDouble(), stack[6].toBool(),   stack[8].toOptional<double>()};
  const Made made = forward(call, generator);
  stack = {made.output,
           made.logsumexp.unsqueeze(-1),
           Tensor(),
           Tensor(),
           call.query.size(-2),
           call.key.size(-2),
           at::scalar_tensor(made.seed, at::kLong),
           at::zeros({}, at::kLong),
           at::empty({0}, call.query.options())};
}

void cudnn_attention_backward(Stack& stack, const at::Generator&) {
  // Arguments: grad, query, key, value, out, logsumexp, seed, offset, bias, four about sequences,
  // dropout, causal, scale.
  const Attention call{
      stack[1].toTensor(),  stack[2].toTensor(), stack[3].toTensor(),           given(stack[8]),
      stack[13].toDouble(), stack[14].toBool(),  stack[15].toOptional<double>()};
  const Made made{stack[4].toTensor(), stack[5].toTensor().squeeze(-1),
                  seed_of(stack[6].toTensor())};
  stack = laid_out(backward(call, stack[0].toTensor(), made), call);
}

}  // namespace ferry::vgpu
