// A checkpointed function, drawn, that does in its recompute what it did in forward, or something
// else: whether that is an error, what the error says, and how often what ran.
#pragma once

#include <optional>

#include "shared/seam/rules.h"
#include "sim/choices/draws.h"
#include "verify/oracles/verdict.h"

namespace ferry::verify {

std::optional<Verdict> judge_recomputes(choices::Draws& draws, Rules rules = {});

}  // namespace ferry::verify
