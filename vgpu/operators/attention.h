// Fused attention as a GPU computes it, on CPU tensors. ways.cpp uses it in place of CUDA's
// operators, so that a model saves the same tensors for backward as on a GPU. There are three
// variants: LibTorch takes the memory-efficient one for single precision, flash attention for other
// types, and cuDNN's if a user selects it. They differ in what they save.
//
// Without dropout the CPU's fused kernel computes it. That kernel has no dropout, so with dropout
// the textbook formula is used. As on a GPU the mask is not saved: backward draws it again from the
// seed that forward returned.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/stack.h>

namespace ferry::vgpu {

// These implement _scaled_dot_product_X_attention and its backward. They take the operator's
// arguments from the stack and leave the results there.
void efficient_attention(torch::jit::Stack& stack, const at::Generator& generator);
void efficient_attention_backward(torch::jit::Stack& stack, const at::Generator& generator);

void flash_attention(torch::jit::Stack& stack, const at::Generator& generator);
void flash_attention_backward(torch::jit::Stack& stack, const at::Generator& generator);
void cudnn_attention(torch::jit::Stack& stack, const at::Generator& generator);
void cudnn_attention_backward(torch::jit::Stack& stack, const at::Generator& generator);

}  // namespace ferry::vgpu
