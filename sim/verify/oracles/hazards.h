// Hazards that the checkers (sim/check) found, as a verdict.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/verify/oracles/verdict.h"

namespace ferry::verify {

// Returns the first hazard, under the oracle that its kind belongs to.
std::optional<Verdict> judge_hazards(const std::vector<check::Hazard>& hazards);

// Takes out what would be hazards if freed bytes were given out again at once, under a use of the
// program's own or, of everybody, under any. True if there were any. (A program may be as careless
// itself, and one that could not go on too. The core says what it could not protect.)
enum class Uses : std::uint8_t { kOfTheProgram, kOfAll };
bool forgive_frees(std::vector<check::Hazard>& hazards, Uses uses);

}  // namespace ferry::verify
