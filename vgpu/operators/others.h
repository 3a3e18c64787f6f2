// Operators, or variants of them, that CUDA has and the CPU does not have, on CPU tensors. Each
// function takes its arguments from the stack and leaves the results there. ways.cpp says which
// operators they implement.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/stack.h>

namespace ferry::vgpu {

// These convert half precision to single within the operator, which the CPU's operators do not
// accept. The first two are softmax and its logarithm, the others are their backward.
void softmax(torch::jit::Stack& stack, const at::Generator&);
void log_softmax(torch::jit::Stack& stack, const at::Generator&);
void softmax_backward(torch::jit::Stack& stack, const at::Generator&);
void log_softmax_backward(torch::jit::Stack& stack, const at::Generator&);

// LU factorisation, with and without pivoting.
void lu_factor(torch::jit::Stack& stack, const at::Generator&);
void lu(torch::jit::Stack& stack, const at::Generator&);

// cuDNN's grid sampler: bilinear, zeros outside, corners aligned.
void grid_sampler(torch::jit::Stack& stack, const at::Generator&);
void grid_sampler_backward(torch::jit::Stack& stack, const at::Generator&);

// Outside training a GPU returns the statistics that it used, and the CPU returns nothing.
void batch_norm(torch::jit::Stack& stack, const at::Generator&);
void batch_norm_legit(torch::jit::Stack& stack, const at::Generator&);

// Answers no to the question whether cuDNN is to compute the operator.
void not_by_cudnn(torch::jit::Stack& stack, const at::Generator&);

}  // namespace ferry::vgpu
