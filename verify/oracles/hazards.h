// Turns the hazards that the checkers (sim/check) found into a verdict.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "verify/oracles/verdict.h"

namespace ferry::verify {

// Returns the first hazard as a verdict of the oracle for its kind.
std::optional<Verdict> judge_hazards(const std::vector<check::Hazard>& hazards);

// Removes frees under a use: hazards only if the freed bytes were reused at once. Removes those
// under uses of the program, or all of them. Returns true if there were any. (A program may be
// careless itself, or fail before its own wait. The core reports what it could not protect.)
enum class Uses : std::uint8_t { kOfTheProgram, kOfAll };
bool forgive_frees(std::vector<check::Hazard>& hazards, Uses uses);

}  // namespace ferry::verify
