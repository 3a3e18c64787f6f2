// Says in words what a row of `ferry plan` moves to the host and back, and what is still on the
// device because its copy comes late.
#pragma once

#include <string>

#include "plan/planner.h"
#include "scenarios/policy.h"

namespace ferry::cli {

// Returns lines; empty if nothing moves. `whose` is the algorithm of an offload-all row.
std::string moves_text(const plan::PolicyRow& row, OffloadAll whose);

}  // namespace ferry::cli
