// A script for one region of the reentrant variant of checkpoint: what its function finds in
// forward and when it runs again, what goes into the backward inside its own, what comes out of
// that, and which backwards are refused.
#pragma once

#include <optional>

#include "shared/seam/rules.h"
#include "verify/oracles/verdict.h"
#include "verify/programs/uses.h"

namespace ferry::verify {

std::optional<Verdict> try_region_script(const DrawnUses& uses, const Rules& rules);

}  // namespace ferry::verify
