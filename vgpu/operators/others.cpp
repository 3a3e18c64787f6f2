#include "vgpu/operators/others.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace ferry::vgpu {
namespace {

using at::Tensor;
using torch::jit::Stack;

Tensor single_if(const Tensor& tensor, bool wanted) {
  return wanted ? tensor.to(at::kFloat) : tensor;
}

std::pair<Tensor, Tensor> of_one_type(const Tensor& one, const Tensor& other) {
  const at::ScalarType type = at::promote_types(one.scalar_type(), other.scalar_type());
  return {one.to(type), other.to(type)};
}

// The textbook LU factorisation without pivoting, column by column. Returns both factors in one
// matrix, the trivial pivots, and for each matrix the number of its first zero pivot or 0.
std::tuple<Tensor, Tensor, Tensor> factored(const Tensor& matrix) {
  Tensor both = matrix.clone();
  const std::int64_t rows = matrix.size(-2);
  const std::int64_t columns = matrix.size(-1);
  const std::int64_t least = std::min(rows, columns);
  const auto batch = matrix.sizes().slice(0, static_cast<std::size_t>(matrix.dim() - 2));
  Tensor info = at::zeros(batch, at::kInt);
  for (std::int64_t k = 0; k < least; ++k) {
    const Tensor pivot = both.select(-2, k).select(-1, k);
    info.copy_(at::where(info.eq(0) & pivot.eq(0), k + 1, info));
    if (k + 1 == rows) break;
    Tensor below = both.narrow(-2, k + 1, rows - k - 1);
    Tensor column = below.narrow(-1, k, 1);
    column.div_(pivot.unsqueeze(-1).unsqueeze(-1));
    if (k + 1 == columns) continue;
    const Tensor right = both.narrow(-2, k, 1).narrow(-1, k + 1, columns - k - 1);
    below.narrow(-1, k + 1, columns - k - 1).sub_(at::matmul(column, right));
  }
  std::vector<std::int64_t> shape = batch.vec();
  shape.push_back(least);
  const Tensor pivots = at::arange(1, least + 1, at::kInt).expand(shape).contiguous();
  return {both, pivots, info};
}

// Returns the given statistics, because the CPU returns none outside training.
void return_statistics(Stack& stack, const Tensor& mean, const Tensor& variance, double epsilon) {
  stack[1] = mean.clone();
  stack[2] = variance.add(epsilon).rsqrt();
}

}  // namespace

void softmax(Stack& stack, const at::Generator&) {
  const bool to_single = stack[2].toBool();
  stack = {at::_softmax(single_if(stack[0].toTensor(), to_single), stack[1].toInt(), false)};
}

void log_softmax(Stack& stack, const at::Generator&) {
  const bool to_single = stack[2].toBool();
  stack = {at::_log_softmax(single_if(stack[0].toTensor(), to_single), stack[1].toInt(), false)};
}

void softmax_backward(Stack& stack, const at::Generator&) {
  const auto [gradient, output] = of_one_type(stack[0].toTensor(), stack[1].toTensor());
  stack = {at::_softmax_backward_data(gradient, output, stack[2].toInt(), gradient.scalar_type())
               .to(stack[3].toScalarType())};
}

void log_softmax_backward(Stack& stack, const at::Generator&) {
  const auto [gradient, output] = of_one_type(stack[0].toTensor(), stack[1].toTensor());
  stack = {
      at::_log_softmax_backward_data(gradient, output, stack[2].toInt(), gradient.scalar_type())
          .to(stack[3].toScalarType())};
}

void lu_factor(Stack& stack, const at::Generator&) {
  const auto [both, pivots, info] =
      stack[1].toBool() ? at::linalg_lu_factor_ex(stack[0].toTensor(), true, stack[2].toBool())
                        : factored(stack[0].toTensor());
  stack = {both, pivots, info};
}

void lu(Stack& stack, const at::Generator&) {
  const Tensor matrix = stack[0].toTensor();
  if (stack[1].toBool()) {
    auto [permutation, lower, upper] = at::linalg_lu(matrix, true);
    stack = {permutation, lower, upper};
    return;
  }
  const Tensor both = std::get<0>(factored(matrix));
  const std::int64_t least = std::min(matrix.size(-2), matrix.size(-1));
  const Tensor unit = at::eye(matrix.size(-2), least, matrix.options());
  const Tensor lower = both.narrow(-1, 0, least).tril(-1) + unit;
  stack = {at::empty({0}, matrix.options()), lower, both.narrow(-2, 0, least).triu()};
}

void grid_sampler(Stack& stack, const at::Generator&) {
  stack = {at::grid_sampler_2d(stack[0].toTensor(), stack[1].toTensor(), 0, 0, true)};
}

void grid_sampler_backward(Stack& stack, const at::Generator&) {
  auto [input, grid] = at::grid_sampler_2d_backward(stack[2].toTensor(), stack[0].toTensor(),
                                                    stack[1].toTensor(), 0, 0, true, {true, true});
  stack = {input, grid};
}

void batch_norm(Stack& stack, const at::Generator&) {
  // Arguments: input, weight, bias, running mean and variance, whether to train, momentum, epsilon.
  const bool train = stack[5].toBool();
  const Stack given = stack;
  auto [output, mean, deviation] = at::native_batch_norm(
      given[0].toTensor(), given[1].toOptional<Tensor>(), given[2].toOptional<Tensor>(),
      given[3].toOptional<Tensor>(), given[4].toOptional<Tensor>(), train, given[6].toDouble(),
      given[7].toDouble());
  stack = {output, mean, deviation};
  if (!train)
    return_statistics(stack, given[3].toTensor(), given[4].toTensor(), given[7].toDouble());
}

void batch_norm_legit(Stack& stack, const at::Generator&) {
  const bool train = stack[5].toBool();
  const Stack given = stack;
  Tensor running_mean = given[3].toTensor();
  Tensor running_variance = given[4].toTensor();
  auto [output, mean, deviation] = at::_native_batch_norm_legit(
      given[0].toTensor(), given[1].toOptional<Tensor>(), given[2].toOptional<Tensor>(),
      running_mean, running_variance, train, given[6].toDouble(), given[7].toDouble());
  stack = {output, mean, deviation};
  if (!train) return_statistics(stack, running_mean, running_variance, given[7].toDouble());
}

void not_by_cudnn(Stack& stack, const at::Generator&) { stack = {false}; }

}  // namespace ferry::vgpu
