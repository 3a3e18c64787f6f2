// Finds the shapes of an operator's results before the operator has run. The operator only runs in
// its turn on the stream, but the call must return allocated results (run.cpp).
//
// Its Meta kernel says the shapes or, if there is none, its CPU kernel on zeros of the arguments'
// shapes. Most of PyTorch's Meta kernels are in Python and take longer than many CPU kernels. So
// the answers are cached: for arguments that differ only in their values the shapes are the same.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/ivalue.h>
#include <c10/core/DispatchKey.h>

#include <memory>
#include <vector>

#include "vgpu/operators/operator.h"

namespace ferry::vgpu {

using Values = std::vector<c10::IValue>;

// Stand-ins that nobody writes to: the arguments as the operator leaves them, and its results.
struct Shapes {
  Values arguments;
  Values results;
};

// Returns null if the shapes depend on values or nobody needs them. If the arguments are invalid,
// throws the operator's own error. Any thread may call it.
std::shared_ptr<const Shapes> find_shapes(const Operator& op, const Values& arguments);

// Returns the arguments with `type` in place of every device, without generators, and not pinned.
Values on_device(const Operator& op, Values arguments, c10::DeviceType type);

// Runs the operator on arguments of the CPU or of Meta, and returns its results.
Values call(const Operator& op, Values arguments, c10::DispatchKey key,
            const at::Generator& generator);

}  // namespace ferry::vgpu
