// Substitutes, here called *ways*, for operators that the CPU has no kernel for, or whose CPU
// kernel draws from a generator that cannot be passed in. A way is a function on CPU tensors, made
// of the CPU's operators. The table in ways.cpp lists them.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/stack.h>

#include <string>

namespace ferry::vgpu {

// Takes the operator's arguments from the stack and leaves its results there. The generator belongs
// to this call. A way is also run on zeros, to find the shapes, unless Meta's shapes are right.
using Way = void (*)(torch::jit::Stack& stack, const at::Generator& generator);

// Returns null if there is none.
Way find_way(const std::string& name);
// Returns whether the Meta kernel's results have the same shapes as the way's.
bool way_has_metas_shapes(const std::string& name);
// Returns whether the way draws random numbers, so that the CUDA generator must advance.
bool way_draws(const std::string& name);

}  // namespace ferry::vgpu
