// Runs a plan file on the simulated card, for `ferry simulate --plan` and `ferry report --plan`.
// Nothing is searched. A plan that was made for another card or for other options of the allocator
// runs too, with a message.
#pragma once

#include <filesystem>

#include "cli/policies.h"
#include "plan/planner.h"

namespace ferry::cli {

// Returns one row, of the plan's policy, with the time and memory of `keep` to compare it with. The
// request's consumers, trace, snapshot and recorder see only the run of that row. Throws InputError
// if the plan was made for another program, or does not match it.
plan::PlanResult run_plan(const std::filesystem::path& file, const PolicyRequest& request);

}  // namespace ferry::cli
