// The cells of recurrent networks as a GPU computes them without cuDNN (ATen/native/cuda/RNN.cu),
// on CPU tensors. ways.cpp uses them, because the CPU has no such operators. One operator does
// everything after the two matrix products. It also returns what backward needs, such as the
// activated gates.
//
// cuDNN's own recurrent networks are not supported. LibTorch gets the answer that cuDNN is not
// acceptable for them, as if the user had switched it off.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/stack.h>

namespace ferry::vgpu {

// They take their arguments from the stack and leave the results there.
void lstm_cell(torch::jit::Stack& stack, const at::Generator&);
void lstm_cell_backward(torch::jit::Stack& stack, const at::Generator&);
void gru_cell(torch::jit::Stack& stack, const at::Generator&);
void gru_cell_backward(torch::jit::Stack& stack, const at::Generator&);

}  // namespace ferry::vgpu
