// One call of an op below autograd, seen through its schema and its boxed arguments.
//
// Which arguments it writes in place is the schema's word (an alias annotation with a `!`); which
// outputs are new is the storages': one that nobody knew. So a view is no event, and neither is a
// look at a shape.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "real/capture/trace.h"

namespace ferry::real::capture {

// Calls `see` with each tensor in the value: itself, or in a list. Undefined ones and numbers in a
// tensor's clothes (wrapped numbers) are none.
void each_tensor(const c10::IValue& value, const std::function<void(const at::Tensor&)>& see);

// Calls `see` with each tensor argument on top of the stack, and whether the op writes it.
void each_argument(const c10::OperatorHandle& op, const torch::jit::Stack& stack,
                   const std::function<void(const at::Tensor&, bool writes)>& see);

// "aten.mm" of aten::mm.out.
std::string label(const c10::OperatorHandle& op);

// Of label(): reads no bytes of its arguments, their shapes at most; leaves its results as they
// are.
bool reads_shapes_only(std::string_view label);
bool writes_nothing(std::string_view label);

// FLOPs and bytes of an event whose refs are known.
//
// FLOPs are counted for matmuls, convolutions and attention (causal attention in full, as PyTorch's
// flop counter does). Everything else is bound by bandwidth: bytes of the distinct elements of its
// tensor arguments and results.
void set_costs(OpEvent& event);

}  // namespace ferry::real::capture
