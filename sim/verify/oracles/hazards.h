// Hazards that the checkers (sim/check) found, as a verdict.
#pragma once

#include <optional>
#include <vector>

#include "sim/verify/oracles/verdict.h"

namespace ferry::verify {

// Returns the first hazard, under the oracle that its kind belongs to.
std::optional<Verdict> judge_hazards(const std::vector<check::Hazard>& hazards);

// Takes out what would be hazards if freed bytes were given out again at once. True if there were
// any. (A program may be as careless itself, and whoever could not go on too.)
bool forgive_frees(std::vector<check::Hazard>& hazards);

}  // namespace ferry::verify
