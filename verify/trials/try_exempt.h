// What an offloader remembers of tensors that are exempt: of those that live all, of those that are
// gone little, and to see who is gone costs little.
#pragma once

#include <optional>

#include "shared/seam/rules.h"
#include "verify/oracles/verdict.h"

namespace ferry::verify {

std::optional<Verdict> try_exempt(const Rules& rules = {});

}  // namespace ferry::verify
