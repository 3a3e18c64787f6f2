// An op's inputs, as a callback of RecordFunction sees them: its own inputs() asserts, where our
// code is built without NDEBUG, on a flag that the wheel's LibTorch, built with it, never sets.
#pragma once

#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>

namespace ferry::real {

// Valid within the start callback alone.
c10::ArrayRef<const c10::IValue> op_inputs(const at::RecordFunction& op);

}  // namespace ferry::real
