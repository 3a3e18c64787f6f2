// Matrix products of half-precision tensors with results in single precision, on CPU tensors.
// LibTorch has them for CUDA only, so ways.cpp needs substitutes. Each function takes its arguments
// from the stack and leaves the result there.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/stack.h>

namespace ferry::vgpu {

// The type of the result follows the tensors, as in aten::mm.dtype. The second function of each
// pair writes to its last argument, as in aten::mm.dtype_out.
void mm_to(torch::jit::Stack& stack, const at::Generator&);
void mm_to_out(torch::jit::Stack& stack, const at::Generator&);
void bmm_to(torch::jit::Stack& stack, const at::Generator&);
void bmm_to_out(torch::jit::Stack& stack, const at::Generator&);
void addmm_to(torch::jit::Stack& stack, const at::Generator&);
void addmm_to_out(torch::jit::Stack& stack, const at::Generator&);
void baddbmm_to(torch::jit::Stack& stack, const at::Generator&);
void baddbmm_to_out(torch::jit::Stack& stack, const at::Generator&);

}  // namespace ferry::vgpu
