// What a row of `ferry plan` moves, in words, and what of it is on the device all the same.
#pragma once

#include <string>

#include "plan/planner.h"
#include "scenarios/policy.h"

namespace ferry::cli {

// Lines; empty where nothing moves. `whose`: the algorithm of a row that is not Ferry's.
std::string moves_text(const plan::PolicyRow& row, OffloadAll whose);

}  // namespace ferry::cli
