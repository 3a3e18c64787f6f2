// What is cut into shapes: the segments of checkpoint_sequential, GPipe's clocks, the order of a
// pipeline's actions; and which shapes have no sense.
#pragma once

#include <optional>

#include "shared/seam/rules.h"
#include "sim/choices/draws.h"
#include "verify/oracles/verdict.h"

namespace ferry::verify {

std::optional<Verdict> judge_shapes(choices::Draws& draws, Rules rules = {});

}  // namespace ferry::verify
