// Judges the hazards that the checkers (sim/check) found: turns the first one into a verdict, and
// removes those that are not the core's fault. All trials use it.
//
// Only one kind can be removed: a free in a stream that is not ordered after the uses of its bytes.
// The program itself may free too early, or a failure may end it before its own wait.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "verify/oracles/verdict.h"

namespace ferry::verify {

// Returns the first hazard as a verdict of the oracle for its kind.
std::optional<Verdict> judge_hazards(const std::vector<check::Hazard>& hazards);

// The uses of the bytes that were freed too early: those of the program itself, or all.
enum class Uses : std::uint8_t { kOfTheProgram, kOfAll };
// Removes the hazards of kind kFreeUnderUse whose earlier access is one of `uses`. Returns true if
// it removed any. Call it only if the core is not at fault: the program frees too early itself, or
// failed before its own wait, or the core could not protect a block (statistics.quarantined).
bool forgive_frees(std::vector<check::Hazard>& hazards, Uses uses);

}  // namespace ferry::verify
