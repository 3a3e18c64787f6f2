// Calls of checkpointed functions, drawn, under a plan: which of them are checkpoints, and what is
// refused.
#pragma once

#include <optional>

#include "shared/seam/rules.h"
#include "sim/choices/draws.h"
#include "verify/oracles/verdict.h"

namespace ferry::verify {

std::optional<Verdict> judge_calls(choices::Draws& draws, Rules rules = {});

}  // namespace ferry::verify
