// Checks what an offloader remembers of exempt tensors: all that live, and few that are gone.
// Finding the ones that are gone must be cheap.
#pragma once

#include <optional>

#include "shared/seam/rules.h"
#include "verify/oracles/verdict.h"

namespace ferry::verify {

std::optional<Verdict> try_exempt(const Rules& rules = {});

}  // namespace ferry::verify
