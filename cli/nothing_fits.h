// What `ferry plan` says where nothing fits: how much is missing, what the least memory is made of,
// and what would help, each way planned.
#pragma once

#include <string>

#include "cli/policies.h"
#include "plan/planner.h"

namespace ferry::cli {

// A sentence, and a line for each way that would help; without a line's end. Empty: no row ran.
std::string nothing_fits(const PolicyRequest& request, const plan::PlanResult& result);

}  // namespace ferry::cli
