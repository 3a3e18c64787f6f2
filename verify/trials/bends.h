// Checks the adaptor that makes mutants of a device's calls (shared/adaptors/bent.h): a bend must
// change the step that it names, and nothing else. A mutant that changed more or less would say
// nothing about the oracles that catch it.
#pragma once

#include <optional>

#include "sim/choices/draws.h"
#include "verify/oracles/verdict.h"

namespace ferry::verify {

// Chooses a random mutation, or none, makes random calls, and compares them with what must arrive.
std::optional<Verdict> judge_bend(choices::Draws& draws);

}  // namespace ferry::verify
