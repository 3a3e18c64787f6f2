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
  Tensor scores() const {
    Tensor scores = at::matmul(query, key.transpose(-2, -1)).mul_(factor());
    if (bias) scores.add_(*bias);
    if (causal) {
      const Tensor seen = at::ones({query.size(-2), key.size(-2)}, at::kBool).tril();
      scores.masked_fill_(seen.logical_not(), -std::numeric_limits<double>::infinity());
    }
    return scores;
  }
  // What is kept, times what makes up for the rest.
  Tensor mask(const Tensor& like, std::int64_t seed) const {
    const auto generator = at::make_generator<at::CPUGeneratorImpl>(static_cast<uint64_t>(seed));
    return at::empty_like(like).bernoulli_(1 - dropout, generator).div_(1 - dropout);
  }
};

// Of the call, and a seed of its own.
std::int64_t drawn_seed(const at::Generator& generator) {
  return at::randint(std::numeric_limits<std::int64_t>::max(), {}, generator, at::kLong)
      .item<std::int64_t>();
}

}  // namespace

void efficient_attention(Stack& stack, const at::Generator& generator) {
  // query, key, value, bias, wants logsumexp, dropout, causal, scale
  const Attention call{stack[0].toTensor(),           stack[1].toTensor(), stack[2].toTensor(),
                       stack[3].toOptional<Tensor>(), stack[5].toDouble(), stack[6].toBool(),
                       stack[7].toOptional<double>()};
  const std::int64_t seed = call.dropout > 0 ? drawn_seed(generator) : 0;
  Tensor output;
  Tensor logsumexp;
  if (call.dropout > 0) {
    const Tensor scores = call.scores();
    const Tensor weights = at::softmax(scores, -1);
    output = at::matmul(weights * call.mask(weights, seed), call.value);
    logsumexp = at::logsumexp(scores, -1);
  } else {
    std::tie(output, logsumexp) = at::_scaled_dot_product_flash_attention_for_cpu(
        call.query, call.key, call.value, 0, call.causal, call.bias, call.scale);
  }
  stack = {output, logsumexp, at::scalar_tensor(seed, at::kLong), at::zeros({}, at::kLong)};
}

void efficient_attention_backward(Stack& stack, const at::Generator&) {
  // grad, query, key, value, bias, out, logsumexp, seed, offset, dropout, wanted, causal, scale
  const Tensor grad = stack[0].toTensor();
  const Tensor bias = stack[4].toTensor();
  TORCH_CHECK_NOT_IMPLEMENTED(!bias.defined() || !stack[10].toBoolList()[3],
                              "the fake GPU does not compute the gradient of an attention's bias");
  const Attention call{
      stack[1].toTensor(),           stack[2].toTensor(),
      stack[3].toTensor(),           bias.defined() ? std::optional(bias) : std::nullopt,
      stack[9].toDouble(),           stack[11].toBool(),
      stack[12].toOptional<double>()};
  if (call.dropout == 0) {
    auto [query, key, value] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
        grad, call.query, call.key, call.value, stack[5].toTensor(), stack[6].toTensor(), 0,
        call.causal, call.bias, call.scale);
    stack = {query, key, value, Tensor()};
    return;
  }
  const Tensor weights = at::softmax(call.scores(), -1);
  const Tensor mask = call.mask(weights, stack[7].toTensor().item<std::int64_t>());
  const Tensor value = at::matmul((weights * mask).transpose(-2, -1), grad);
  const Tensor of_weights = at::matmul(grad, call.value.transpose(-2, -1)) * mask;
  const Tensor of_scores =
      (of_weights - (of_weights * weights).sum({-1}, true)) * weights * call.factor();
  stack = {at::matmul(of_scores, call.key), at::matmul(of_scores.transpose(-2, -1), call.query),
           value, Tensor()};
}

}  // namespace ferry::vgpu
