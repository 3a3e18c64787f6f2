#include "vgpu/operators/recurrent.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <c10/util/Exception.h>

#include <optional>
#include <vector>

namespace ferry::vgpu {
namespace {

using at::Tensor;
using torch::jit::Stack;

constexpr std::int64_t kGates = 1;  // the dimension along which gates are concatenated

Tensor with_bias(const Tensor& gates, const c10::IValue& bias) {
  const auto given = bias.toOptional<Tensor>();
  return given && given->defined() ? gates + *given : gates;
}

std::vector<Tensor> parts(const Tensor& gates, std::int64_t count) {
  TORCH_CHECK(gates.dim() == 2 && gates.size(kGates) % count == 0, "expected ", count,
              " gates side by side, got shape ", gates.sizes());
  return gates.chunk(count, kGates);
}

Tensor or_zeros(const c10::IValue& gradient, const Tensor& like) {
  const auto given = gradient.toOptional<Tensor>();
  return given && given->defined() ? *given : at::zeros_like(like);
}

Tensor of_bias(const Tensor& gates, bool wanted) {
  return wanted ? gates.sum(0, /*keepdim=*/false) : Tensor();
}

}  // namespace

void lstm_cell(Stack& stack, const at::Generator&) {
  // Arguments: gates of the input, gates of the state, cx, two biases.
  const Tensor cx = stack[2].toTensor();
  const Tensor sum =
      with_bias(stack[0].toTensor(), stack[3]) + with_bias(stack[1].toTensor(), stack[4]);
  const std::vector<Tensor> gates = parts(sum, 4);
  const Tensor in = at::sigmoid(gates[0]);
  const Tensor forget = at::sigmoid(gates[1]);
  const Tensor cell = at::tanh(gates[2]);
  const Tensor out = at::sigmoid(gates[3]);
  const Tensor cy = forget * cx + in * cell;
  stack = {out * cy.tanh(), cy, at::cat({in, forget, cell, out}, kGates)};
}

void lstm_cell_backward(Stack& stack, const at::Generator&) {
  // Arguments: gradients of hy and cy, cx, cy, the gates, whether there is a bias.
  const Tensor cx = stack[2].toTensor();
  const Tensor cy = stack[3].toTensor();
  const std::vector<Tensor> gates = parts(stack[4].toTensor(), 4);
  const Tensor &in = gates[0], &forget = gates[1], &cell = gates[2], &out = gates[3];
  const Tensor of_hy = or_zeros(stack[0], cy);
  const Tensor tanh = cy.tanh();
  const Tensor of_cell_state = of_hy * out * (1 - tanh * tanh) + or_zeros(stack[1], cy);
  const Tensor of_gates =
      at::cat({of_cell_state * cell * in * (1 - in), of_cell_state * cx * forget * (1 - forget),
               of_cell_state * in * (1 - cell * cell), of_hy * tanh * out * (1 - out)},
              kGates);
  stack = {of_gates, of_cell_state * forget, of_bias(of_gates, stack[5].toBool())};
}

void gru_cell(Stack& stack, const at::Generator&) {
  // Arguments: gates of the input, gates of the state, hx, two biases.
  const Tensor hx = stack[2].toTensor();
  const std::vector<Tensor> input = parts(with_bias(stack[0].toTensor(), stack[3]), 3);
  const std::vector<Tensor> state = parts(with_bias(stack[1].toTensor(), stack[4]), 3);
  const Tensor reset = at::sigmoid(input[0] + state[0]);
  const Tensor update = at::sigmoid(input[1] + state[1]);
  const Tensor fresh = at::tanh(input[2] + reset * state[2]);
  stack = {(hx - fresh) * update + fresh, at::cat({reset, update, fresh, hx, state[2]}, kGates)};
}

void gru_cell_backward(Stack& stack, const at::Generator&) {
  // Arguments: gradient of hy, what forward saved, whether there is a bias.
  const Tensor of_hy = stack[0].toTensor();
  const std::vector<Tensor> kept = parts(stack[1].toTensor(), 5);
  const Tensor &reset = kept[0], &update = kept[1], &fresh = kept[2], &hx = kept[3];
  const Tensor of_fresh = of_hy * (1 - update) * (1 - fresh * fresh);
  const Tensor of_update = of_hy * (hx - fresh) * update * (1 - update);
  const Tensor of_reset = of_fresh * kept[4] * reset * (1 - reset);
  const Tensor of_input = at::cat({of_reset, of_update, of_fresh}, kGates);
  const Tensor of_state = at::cat({of_reset, of_update, of_fresh * reset}, kGates);
  const bool biased = stack[2].toBool();
  stack = {of_input, of_state, of_hy * update, of_bias(of_input, biased),
           of_bias(of_state, biased)};
}

}  // namespace ferry::vgpu
