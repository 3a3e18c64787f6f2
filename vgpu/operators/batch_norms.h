// A batch's norm in the parts that SyncBatchNorm calls one by one, which CUDA alone has: of CPU
// tensors. The second dimension has the channels. Statistics are in single precision where the
// input is in half; a *deviation* is the inverse of the standard one.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/stack.h>

namespace ferry::vgpu {

// The mean and the deviation of each channel.
void batch_norm_stats(torch::jit::Stack& stack, const at::Generator&);
// Those of several batches, from each one's (a row of the arguments) and its count: a number that
// all have, or a tensor. The running statistics go along.
void batch_norm_gather_stats(torch::jit::Stack& stack, const at::Generator&);
// The input by these statistics; the second writes to the tensor that is last.
void batch_norm_elemt(torch::jit::Stack& stack, const at::Generator&);
void batch_norm_elemt_out(torch::jit::Stack& stack, const at::Generator&);
// Each channel's sum of the gradient, and of its product with the input less its mean; the weight's
// gradient and the bias's. What is not wanted is not defined.
void batch_norm_backward_reduce(torch::jit::Stack& stack, const at::Generator&);
// The input's gradient, from such sums over all batches.
void batch_norm_backward_elemt(torch::jit::Stack& stack, const at::Generator&);

}  // namespace ferry::vgpu
