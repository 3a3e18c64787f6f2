// What stands for an operator that the CPU has no kernel for, or draws for with a generator that
// cannot be given to it: a function of CPU tensors, made of the CPU's operators.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/stack.h>

#include <string>

namespace ferry::vgpu {

// Takes the operator's arguments from the stack and leaves its results. The generator is the
// call's own. Also run on zeros, for the shapes, where Meta's are others.
using Way = void (*)(torch::jit::Stack& stack, const at::Generator& generator);

// Null: none.
Way find_way(const std::string& name);
// Whether Meta's shapes are the way's.
bool way_has_metas_shapes(const std::string& name);
// Whether the way draws, so that the CUDA generator advances.
bool way_draws(const std::string& name);

}  // namespace ferry::vgpu
