// Operators below autograd, by name: which of them make tensors of their own.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/jit_type_base.h>

#include <string>
#include <string_view>

namespace ferry::real {

// Its name in programs and plans: "aten.mm" for aten::mm.out.
std::string label(const c10::OperatorHandle& op);

// True for a tensor, and for lists and optionals of them.
bool holds_tensors(const c10::Type& type);

// True for memory that is allocated to be written in place.
bool is_empty(std::string_view op);

// True if the op computes a tensor of its own and does nothing else.
bool can_keep(const c10::OperatorHandle& op);

// Spells the name as the dispatcher does ("aten::mm.default" is "aten::mm"). Throws ValueError for
// a name that is no operator's, or that of one whose results nobody could keep.
std::string known_op(const std::string& op);

}  // namespace ferry::real
