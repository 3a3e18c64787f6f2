#include "vgpu/operators/products.h"

#include <ATen/Functions.h>

#include <cstddef>

namespace ferry::vgpu {
namespace {

using at::Tensor;
using torch::jit::Stack;

// Checks the type of the result with the error of CUDA's kernels.
at::ScalarType result_type(const Stack& stack, std::size_t tensors) {
  const at::ScalarType from = stack[tensors - 1].toTensor().scalar_type();
  const at::ScalarType to = stack[tensors].toScalarType();
  const bool widens = to == at::kFloat && (from == at::kHalf || from == at::kBFloat16);
  TORCH_CHECK(to == from || widens,
              "out_dtype must be the same as input dtype or fp32 for fp16/bf16 inputs");
  return to;
}

// Half precision converts exactly to single, and products of two such numbers are exact.
template <class Product>
Tensor product(const Stack& stack, Product product) {
  const at::ScalarType type = result_type(stack, 2);
  return product(stack[0].toTensor().to(type), stack[1].toTensor().to(type));
}

template <class Product>
Tensor sum(const Stack& stack, Product product) {
  const at::ScalarType type = result_type(stack, 3);
  return product(stack[0].toTensor().to(type), stack[1].toTensor().to(type),
                 stack[2].toTensor().to(type), stack[4].toScalar(), stack[5].toScalar());
}

void give(Stack& stack, const Tensor& made) { stack = {made}; }

void give_out(Stack& stack, const Tensor& made) {
  const Tensor out = stack.back().toTensor();
  TORCH_CHECK(out.scalar_type() == made.scalar_type(), "out_dtype must be the type of `out`");
  out.resize_(made.sizes());
  out.copy_(made);
  stack = {out};
}

const auto kMm = [](const Tensor& a, const Tensor& b) { return at::mm(a, b); };
const auto kBmm = [](const Tensor& a, const Tensor& b) { return at::bmm(a, b); };
const auto kAddmm = [](const Tensor& to, const Tensor& a, const Tensor& b, const at::Scalar& beta,
                       const at::Scalar& alpha) { return at::addmm(to, a, b, beta, alpha); };
const auto kBaddbmm = [](const Tensor& to, const Tensor& a, const Tensor& b, const at::Scalar& beta,
                         const at::Scalar& alpha) { return at::baddbmm(to, a, b, beta, alpha); };

}  // namespace

void mm_to(Stack& stack, const at::Generator&) { give(stack, product(stack, kMm)); }
void mm_to_out(Stack& stack, const at::Generator&) { give_out(stack, product(stack, kMm)); }
void bmm_to(Stack& stack, const at::Generator&) { give(stack, product(stack, kBmm)); }
void bmm_to_out(Stack& stack, const at::Generator&) { give_out(stack, product(stack, kBmm)); }
void addmm_to(Stack& stack, const at::Generator&) { give(stack, sum(stack, kAddmm)); }
void addmm_to_out(Stack& stack, const at::Generator&) { give_out(stack, sum(stack, kAddmm)); }
void baddbmm_to(Stack& stack, const at::Generator&) { give(stack, sum(stack, kBaddbmm)); }
void baddbmm_to_out(Stack& stack, const at::Generator&) { give_out(stack, sum(stack, kBaddbmm)); }

}  // namespace ferry::vgpu
