#include "vgpu/operators/batch_norms.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <cstdint>
#include <vector>

namespace ferry::vgpu {
namespace {

using at::Tensor;
using torch::jit::Stack;

// Converts half precision to the type in which sums are computed.
Tensor summed(const Tensor& tensor) {
  const at::ScalarType type = tensor.scalar_type();
  return type == at::kHalf || type == at::kBFloat16 ? tensor.to(at::kFloat) : tensor;
}

// Shapes a tensor with one number for each channel so that it broadcasts over the input.
Tensor beside(const Tensor& input, const Tensor& channels) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(input.dim()), 1);
  shape.at(1) = input.size(1);
  return channels.view(shape);
}

std::vector<std::int64_t> all_but_channels(const Tensor& input) {
  std::vector<std::int64_t> dimensions = {0};
  for (std::int64_t i = 2; i < input.dim(); ++i) dimensions.push_back(i);
  return dimensions;
}

Tensor defined(const c10::IValue& value) { return value.toOptional<Tensor>().value_or(Tensor()); }

// Computes running = (1 - momentum) running + momentum now.
void move(const Tensor& running, const Tensor& now, double momentum) {
  if (running.defined()) running.mul_(1 - momentum).add_(now.to(running.scalar_type()), momentum);
}

// Arguments: input, weight, bias, mean, deviation, epsilon.
Tensor normed(const Stack& stack) {
  const Tensor input = stack[0].toTensor();
  const Tensor weight = defined(stack[1]);
  const Tensor bias = defined(stack[2]);
  Tensor made = summed(input).sub(beside(input, stack[3].toTensor()));
  made = made.mul(beside(input, stack[4].toTensor()));
  if (weight.defined()) made = made.mul(beside(input, weight));
  if (bias.defined()) made = made.add(beside(input, bias));
  return made.to(input.scalar_type());
}

}  // namespace

void batch_norm_stats(Stack& stack, const at::Generator&) {
  const Tensor input = summed(stack[0].toTensor());
  const auto [variance, mean] = at::var_mean(input, all_but_channels(input), /*correction=*/0);
  stack = {mean, variance.add(stack[1].toDouble()).rsqrt()};
}

void batch_norm_gather_stats(Stack& stack, const at::Generator&) {
  // Arguments: input, means, deviations, running mean and variance, momentum, epsilon, counts.
  const Tensor means = summed(stack[1].toTensor());
  const Tensor deviations = summed(stack[2].toTensor());
  const double momentum = stack[5].toDouble();
  const double epsilon = stack[6].toDouble();
  const Tensor counts = stack[7].isTensor()
                            ? stack[7].toTensor().to(means.scalar_type()).view({-1, 1})
                            : at::full({means.size(0), 1}, stack[7].toInt(), means.options());
  const Tensor count = counts.sum(0);
  const Tensor mean = means.mul(counts).sum(0).div(count);
  const Tensor within = deviations.pow(-2).sub(epsilon);
  const Tensor squares = within.add(means.sub(mean).square()).mul(counts).sum(0);
  move(defined(stack[3]), mean, momentum);
  move(defined(stack[4]), squares.div(count.sub(1)), momentum);
  stack = {mean, squares.div(count).add(epsilon).rsqrt()};
}

void batch_norm_elemt(Stack& stack, const at::Generator&) { stack = {normed(stack)}; }

void batch_norm_elemt_out(Stack& stack, const at::Generator&) {
  const Tensor made = normed(stack);
  const Tensor out = stack.back().toTensor();
  out.resize_(made.sizes());
  out.copy_(made);
  stack = {out};
}

void batch_norm_backward_reduce(Stack& stack, const at::Generator&) {
  // Arguments: gradient, input, mean, deviation, weight, and which gradients are wanted: those of
  // the input, the weight, the bias.
  const Tensor gradient = summed(stack[0].toTensor());
  const Tensor input = stack[1].toTensor();
  const Tensor mean = stack[2].toTensor();
  const Tensor weight = defined(stack[4]);
  const std::vector<std::int64_t> dimensions = all_but_channels(input);
  const Tensor sum = gradient.sum(dimensions);
  const Tensor product = gradient.mul(summed(input).sub(beside(input, mean))).sum(dimensions);
  const at::ScalarType type = weight.defined() ? weight.scalar_type() : mean.scalar_type();
  Tensor of_weight;
  Tensor of_bias;
  if (stack[6].toBool()) of_weight = product.mul(stack[3].toTensor()).to(type);
  if (stack[7].toBool()) of_bias = sum.to(type, /*non_blocking=*/false, /*copy=*/true);
  const bool of_input = stack[5].toBool();
  stack = {of_input ? sum : Tensor(), of_input ? product : Tensor(), of_weight, of_bias};
}

void batch_norm_backward_elemt(Stack& stack, const at::Generator&) {
  // Arguments: gradient, input, mean, deviation, weight, both sums, counts.
  const Tensor gradient = stack[0].toTensor();
  const Tensor input = stack[1].toTensor();
  const Tensor deviation = stack[3].toTensor();
  const Tensor weight = defined(stack[4]);
  const Tensor count = stack[7].toTensor().sum().to(deviation.scalar_type());
  const Tensor mean_gradient = stack[5].toTensor().div(count);
  const Tensor slope = stack[6].toTensor().div(count).mul(deviation.square());
  const Tensor scale = weight.defined() ? deviation.mul(weight) : deviation;
  const Tensor centred = summed(input).sub(beside(input, stack[2].toTensor()));
  Tensor made = summed(gradient).sub(beside(input, mean_gradient));
  made = made.sub(centred.mul(beside(input, slope))).mul(beside(input, scale));
  stack = {made.to(input.scalar_type())};
}

}  // namespace ferry::vgpu
