// What CUDA has and the CPU has not, of CPU tensors: arguments from the stack, results to it.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/stack.h>

namespace ferry::vgpu {

// Half precision to single within the operator, which a CPU refuses. The first two are softmax and
// its logarithm, the others their backward.
void softmax(torch::jit::Stack& stack, const at::Generator&);
void log_softmax(torch::jit::Stack& stack, const at::Generator&);
void softmax_backward(torch::jit::Stack& stack, const at::Generator&);
void log_softmax_backward(torch::jit::Stack& stack, const at::Generator&);

// LU without pivoting.
void lu_factor(torch::jit::Stack& stack, const at::Generator&);
void lu(torch::jit::Stack& stack, const at::Generator&);

// cuDNN's grid sampler: bilinear, zeros outside, corners aligned.
void grid_sampler(torch::jit::Stack& stack, const at::Generator&);
void grid_sampler_backward(torch::jit::Stack& stack, const at::Generator&);

// Outside training a GPU returns the statistics that it used, and a CPU nothing.
void batch_norm(torch::jit::Stack& stack, const at::Generator&);
void batch_norm_legit(torch::jit::Stack& stack, const at::Generator&);

// Whether cuDNN is to do it: no.
void not_by_cudnn(torch::jit::Stack& stack, const at::Generator&);

}  // namespace ferry::vgpu
