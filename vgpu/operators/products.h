// Products of half precision whose results are single, which CUDA alone has: of CPU tensors.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/stack.h>

namespace ferry::vgpu {

// With the type of the result behind the tensors, as in aten::mm.dtype; the second of each pair
// writes to the tensor that is last, as in aten::mm.dtype_out.
void mm_to(torch::jit::Stack& stack, const at::Generator&);
void mm_to_out(torch::jit::Stack& stack, const at::Generator&);
void bmm_to(torch::jit::Stack& stack, const at::Generator&);
void bmm_to_out(torch::jit::Stack& stack, const at::Generator&);
void addmm_to(torch::jit::Stack& stack, const at::Generator&);
void addmm_to_out(torch::jit::Stack& stack, const at::Generator&);
void baddbmm_to(torch::jit::Stack& stack, const at::Generator&);
void baddbmm_to_out(torch::jit::Stack& stack, const at::Generator&);

}  // namespace ferry::vgpu
