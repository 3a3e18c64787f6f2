// Replaces the CUDA kernel of an operator, for the rest of the process. kernels.cpp does so for
// LibTorch's own operators, extensions.cpp for those that are registered later.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

namespace ferry::vgpu {

// No other thread may run the operator meanwhile. LibTorch's warning that a kernel is replaced is
// not shown.
void replace_kernel(const c10::OperatorHandle& op, torch::CppFunction kernel);

}  // namespace ferry::vgpu
