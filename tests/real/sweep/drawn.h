// Calls of overloads that no sample calls, from what is known of them.
#pragma once

#include <vector>

#include "tests/real/sweep/calls.h"

namespace ferry::sweep {

// To be tried in this order; few of them run. An argument is taken from a recorded call of an
// overload of the same name (add.Tensor's for add_.Tensor), where it has one of that name and type;
// else it is its default, or something simple of its type.
std::vector<Call> draw(const c10::OperatorHandle& op, const Calls& recorded);

}  // namespace ferry::sweep
