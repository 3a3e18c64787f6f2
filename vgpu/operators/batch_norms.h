// The parts of a batch norm that SyncBatchNorm calls one by one, on CPU tensors. LibTorch has them
// for CUDA only, so ways.cpp needs substitutes.
//
// The second dimension has the channels. Statistics are in single precision if the input is in half
// precision. Here a *deviation* is the inverse of the standard deviation. Each function takes its
// arguments from the stack and leaves the results there.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/stack.h>

namespace ferry::vgpu {

// Computes the mean and the deviation of each channel.
void batch_norm_stats(torch::jit::Stack& stack, const at::Generator&);
// Combines the statistics of several batches, one batch in each row of the arguments. The count is
// one number for all batches, or a tensor. The running statistics are updated as well.
void batch_norm_gather_stats(torch::jit::Stack& stack, const at::Generator&);
// Normalises the input by these statistics. The second function writes to its last argument.
void batch_norm_elemt(torch::jit::Stack& stack, const at::Generator&);
void batch_norm_elemt_out(torch::jit::Stack& stack, const at::Generator&);
// Sums over each channel: the gradient, and the gradient times (input - mean). Also computes the
// gradients of weight and bias. A result that is not wanted is an undefined tensor.
void batch_norm_backward_reduce(torch::jit::Stack& stack, const at::Generator&);
// Computes the input's gradient from such sums over all batches.
void batch_norm_backward_elemt(torch::jit::Stack& stack, const at::Generator&);

}  // namespace ferry::vgpu
