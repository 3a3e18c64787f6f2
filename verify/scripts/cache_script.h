// A script for what one selective checkpoint keeps: ops run with all policies, under hooks that
// move what they are given, decline it, or fail to bring it back; and recomputes ask for the
// outputs. What comes back, what is refused and what is alive must be as the policies say.
#pragma once

#include <optional>

#include "shared/seam/rules.h"
#include "verify/oracles/verdict.h"
#include "verify/programs/uses.h"

namespace ferry::verify {

std::optional<Verdict> try_cache_script(const DrawnUses& uses, const Rules& rules);

}  // namespace ferry::verify
