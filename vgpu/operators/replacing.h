// A kernel in the place of an operator's CUDA kernel, for as long as the process lasts.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

namespace ferry::vgpu {

// Not while another thread runs the operator. LibTorch's warning is not shown.
void replace_kernel(const c10::OperatorHandle& op, torch::CppFunction kernel);

}  // namespace ferry::vgpu
