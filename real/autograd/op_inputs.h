// Returns the inputs of an op in a callback of RecordFunction. RecordFunction::inputs() cannot be
// used: without NDEBUG it asserts a flag that LibTorch's wheel, built with NDEBUG, never sets.
#pragma once

#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>

namespace ferry::real {

// The result is valid in the start callback only.
c10::ArrayRef<const c10::IValue> op_inputs(const at::RecordFunction& op);

}  // namespace ferry::real
