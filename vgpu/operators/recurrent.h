// The cells of recurrent networks as a GPU computes them without cuDNN, of CPU tensors: one
// operator for what follows the two products, with the activated gates as what backward needs.
// (ATen/native/cuda/RNN.cu)
//
// cuDNN's own recurrent networks are not here: LibTorch is told that cuDNN is not acceptable for
// them, as where a user switches it off.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/stack.h>

namespace ferry::vgpu {

// Arguments from the stack, results to it.
void lstm_cell(torch::jit::Stack& stack, const at::Generator&);
void lstm_cell_backward(torch::jit::Stack& stack, const at::Generator&);
void gru_cell(torch::jit::Stack& stack, const at::Generator&);
void gru_cell_backward(torch::jit::Stack& stack, const at::Generator&);

}  // namespace ferry::vgpu
