// The answer of `ferry plan` if nothing fits: how much memory is missing, what the smallest plan's
// memory consists of, and which changes would help. Each of these changes was planned.
#pragma once

#include <string>

#include "cli/policies.h"
#include "plan/planner.h"

namespace ferry::cli {

// Returns a few sentences and a line for each change that would help, without a final line end.
// Empty if no row ran.
std::string nothing_fits(const PolicyArguments& arguments, const PolicyRequest& request,
                         const plan::PlanResult& result);

}  // namespace ferry::cli
