// One call of an op below autograd, seen through its schema and its boxed arguments. The recorder
// of captures and the stream log (real/log/op_log.h) read calls with it.
//
// The schema says which arguments the op writes in place (an alias annotation with a `!`). An
// output is new if its storage is new. So a view is not an event, nor is reading a shape.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <functional>

#include "real/capture/trace.h"

namespace ferry::real::capture {

// Calls `see` with each tensor in the value: itself, or in a list. It skips undefined tensors and
// wrapped numbers.
void each_tensor(const c10::IValue& value, const std::function<void(const at::Tensor&)>& see);

// Calls `see` with each tensor argument on top of the stack, and whether the op writes it.
void each_argument(const c10::OperatorHandle& op, const torch::jit::Stack& stack,
                   const std::function<void(const at::Tensor&, bool writes)>& see);

// Returns the boxed arguments that decide which kernels run.
OpFlags flags_of(const c10::OperatorHandle& op, const torch::jit::Stack& stack);

// Sets the FLOPs and bytes of an event whose refs are known (formats/op_costs.h).
void set_costs(OpEvent& event);

}  // namespace ferry::real::capture
