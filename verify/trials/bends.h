// What a bend does to a device's calls (shared/adaptors/bent.h): it bends the step that it names,
// and nothing else. A mutant that did more, or less, would show nothing of the oracles that catch
// it.
#pragma once

#include <optional>

#include "sim/choices/draws.h"
#include "verify/oracles/verdict.h"

namespace ferry::verify {

// Draws a mutation, or none, and calls.
std::optional<Verdict> judge_bend(choices::Draws& draws);

}  // namespace ferry::verify
