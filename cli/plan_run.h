// A plan's file, carried out on the simulated card: the row that it is.
#pragma once

#include <filesystem>

#include "cli/policies.h"
#include "plan/planner.h"

namespace ferry::cli {

// One row, of the plan's policy, beside what `keep` takes of the same program. The request's
// consumers, trace, snapshot and recorder are of that row's run. Throws InputError where the plan
// is not this program's.
plan::PlanResult run_plan(const std::filesystem::path& file, const PolicyRequest& request);

}  // namespace ferry::cli
