// Hazards that the checkers (sim/check) found, as a verdict.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "verify/oracles/verdict.h"

namespace ferry::verify {

// Returns the first hazard, under the oracle that its kind belongs to.
std::optional<Verdict> judge_hazards(const std::vector<check::Hazard>& hazards);

// Takes out frees under a use, which would be hazards if the bytes were given out again at once:
// under the program's own uses, or under all. True if there were any. (A program may be careless
// itself, or fail before it is careful. The core says what it could not protect.)
enum class Uses : std::uint8_t { kOfTheProgram, kOfAll };
bool forgive_frees(std::vector<check::Hazard>& hazards, Uses uses);

}  // namespace ferry::verify
