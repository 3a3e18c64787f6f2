// Fused attention as a GPU computes it, of CPU tensors: the efficient one, which LibTorch takes
// for single precision, flash for the others, cuDNN's where a user asks for it. They differ in
// what they keep for backward.
//
// Without dropout it is the CPU's fused kernel. With dropout, for which the CPU has none, it is the
// formula; as on a GPU the mask is not saved, but drawn again in backward from the seed that
// forward returns.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/stack.h>

namespace ferry::vgpu {

// Of _scaled_dot_product_X_attention and its backward: arguments from the stack, results to it.
void efficient_attention(torch::jit::Stack& stack, const at::Generator& generator);
void efficient_attention_backward(torch::jit::Stack& stack, const at::Generator& generator);

void flash_attention(torch::jit::Stack& stack, const at::Generator& generator);
void flash_attention_backward(torch::jit::Stack& stack, const at::Generator& generator);
void cudnn_attention(torch::jit::Stack& stack, const at::Generator& generator);
void cudnn_attention_backward(torch::jit::Stack& stack, const at::Generator& generator);

}  // namespace ferry::vgpu
