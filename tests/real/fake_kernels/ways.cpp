#include "tests/real/fake_kernels/ways.h"

#include <ATen/Functions.h>

#include <array>
#include <string_view>
#include <tuple>

#include "tests/real/fake_kernels/attention.h"

namespace ferry::fake_kernels {
namespace {

using at::Tensor;
using torch::jit::Stack;

// The scale is 0 where everything is dropped, as LibTorch has it.
void native_dropout(Stack& stack, const at::Generator& generator) {
  const Tensor input = stack[0].toTensor();
  const double p = stack[1].toDouble();
  const bool train = !stack[2].isBool() || stack[2].toBool();
  Tensor mask = at::ones(input.sizes(), at::kBool);
  Tensor output = input.clone();
  if (train) {
    mask.bernoulli_(1 - p, generator);
    output = input.mul(mask).mul_(p < 1 ? 1 / (1 - p) : 0.0);
  }
  stack = {output, mask};
}

// cuDNN's batch normalisation keeps a reserve beside the two statistics.
void cudnn_batch_norm(Stack& stack, const at::Generator&) {
  auto [output, mean, deviation] =
      at::native_batch_norm(stack[0].toTensor(), stack[1].toTensor(), stack[2].toOptional<Tensor>(),
                            stack[3].toOptional<Tensor>(), stack[4].toOptional<Tensor>(),
                            stack[5].toBool(), stack[6].toDouble(), stack[7].toDouble());
  stack = {output, mean, deviation, at::empty({0}, at::kByte)};
}

void cudnn_batch_norm_backward(Stack& stack, const at::Generator&) {
  // input, grad_output, weight, running mean and var, saved mean and var, epsilon, reserve
  auto [input, weight, bias] = at::native_batch_norm_backward(
      stack[1].toTensor(), stack[0].toTensor(), stack[2].toTensor(), stack[3].toOptional<Tensor>(),
      stack[4].toOptional<Tensor>(), stack[5].toOptional<Tensor>(), stack[6].toOptional<Tensor>(),
      /*train=*/true, stack[7].toDouble(), {true, true, true});
  stack = {input, weight, bias};
}

struct Known {
  std::string_view name;
  Way way;
  bool draws;
};
constexpr std::array kWays = {
    Known{"aten::native_dropout", native_dropout, true},
    Known{"aten::cudnn_batch_norm", cudnn_batch_norm, false},
    Known{"aten::cudnn_batch_norm_backward", cudnn_batch_norm_backward, false},
    Known{"aten::_scaled_dot_product_efficient_attention", efficient_attention, true},
    Known{"aten::_scaled_dot_product_efficient_attention_backward", efficient_attention_backward,
          false},
};

const Known* known(const std::string& name) {
  for (const Known& each : kWays) {
    if (each.name == name) return &each;
  }
  return nullptr;
}

}  // namespace

Way find_way(const std::string& name) {
  const Known* const found = known(name);
  return found != nullptr ? found->way : nullptr;
}

bool way_draws(const std::string& name) {
  const Known* const found = known(name);
  return found != nullptr && found->draws;
}

}  // namespace ferry::fake_kernels
