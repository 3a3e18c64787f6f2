// Declarations of skip tensors, drawn: whether they fit together, what is said of those that do
// not, and the routes between stages of those that do.
#pragma once

#include <optional>

#include "shared/seam/rules.h"
#include "sim/choices/draws.h"
#include "verify/oracles/verdict.h"

namespace ferry::verify {

std::optional<Verdict> judge_layouts(choices::Draws& draws, Rules rules = {});

}  // namespace ferry::verify
