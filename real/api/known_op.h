// Finds operators below autograd by name, and says which of them make tensors of their own.
// Programs and plans name operators as label() does. ferry::replay and ferry::selective check the
// names that a user gives with known_op().
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/jit_type_base.h>

#include <string>
#include <string_view>

namespace ferry::real {

// Returns the name of the operator in programs and plans: "aten.mm" for aten::mm.out.
std::string label(const c10::OperatorHandle& op);

// True for a tensor, and for lists and optionals of tensors.
bool holds_tensors(const c10::Type& type);

// True if the operator allocates memory without defined contents.
bool is_empty(std::string_view op);

// True if the operator computes a tensor of its own and writes nothing else.
bool can_keep(const c10::OperatorHandle& op);

// Returns the name as the dispatcher spells it: "aten::mm" for "aten::mm.default". Throws
// ValueError if there is no such operator, or if its results cannot be kept.
std::string known_op(const std::string& op);

}  // namespace ferry::real
