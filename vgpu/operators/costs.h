// What an operator costs a GPU: FLOPs, bytes, and the type that it computes in.
#pragma once

#include <ATen/core/ivalue.h>

#include <vector>

#include "vgpu/operators/operator.h"
#include "vgpu/runtime/clock.h"

namespace ferry::vgpu {

// Of one call, as if one kernel did it all. An element of a type that programs do not know
// (complex, quantized) counts as eight bytes.
KernelCost cost_of(const Operator& op, const std::vector<c10::IValue>& arguments,
                   const std::vector<c10::IValue>& results);

}  // namespace ferry::vgpu
