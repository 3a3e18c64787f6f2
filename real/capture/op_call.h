// One call of an op below autograd, seen through its schema and its boxed arguments.
//
// The schema states which arguments it writes in place (an alias annotation with a `!`);
// an output is new if its storage is. So a view is no event, and neither is a look at a
// shape.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <functional>

#include "real/capture/trace.h"

namespace ferry::real::capture {

// Calls `see` with each tensor in the value: itself, or in a list. Skips undefined tensors and
// wrapped numbers.
void each_tensor(const c10::IValue& value, const std::function<void(const at::Tensor&)>& see);

// Calls `see` with each tensor argument on top of the stack, and true if the op writes it.
void each_argument(const c10::OperatorHandle& op, const torch::jit::Stack& stack,
                   const std::function<void(const at::Tensor&, bool writes)>& see);

// Of its boxed arguments those that say which kernels run.
OpFlags flags_of(const c10::OperatorHandle& op, const torch::jit::Stack& stack);

// FLOPs and bytes of an event whose refs are known (formats/op_costs.h).
void set_costs(OpEvent& event);

}  // namespace ferry::real::capture
