// What an operator's results will be in shape, before it has run.
//
// Its Meta kernel says so, or, where there is none, its CPU kernel on zeros of those shapes. Most
// of PyTorch's Meta kernels are in Python, which takes longer than many a CPU kernel. So what one
// said is kept: for arguments that are alike in all but their values it says the same again.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/ivalue.h>
#include <c10/core/DispatchKey.h>

#include <memory>
#include <vector>

#include "vgpu/operators/operator.h"

namespace ferry::vgpu {

using Values = std::vector<c10::IValue>;

// Stand-ins that nobody writes to: of the arguments as the operator leaves them, and its results.
struct Shapes {
  Values arguments;
  Values results;
};

// None: they depend on values, or nobody needs them. Throws what the operator says of arguments
// that cannot be. Any thread.
std::shared_ptr<const Shapes> find_shapes(const Operator& op, const Values& arguments);

// The arguments, with those that name a device naming that one, and none that draws or pins.
Values on_device(const Operator& op, Values arguments, c10::DeviceType type);

// Results of the operator for arguments of the CPU, or of Meta.
Values call(const Operator& op, Values arguments, c10::DispatchKey key,
            const at::Generator& generator);

}  // namespace ferry::vgpu
