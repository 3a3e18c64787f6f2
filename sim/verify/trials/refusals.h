// What the core must refuse, with the words that it must say: options and shapes without sense.
#pragma once

#include <optional>

#include "sim/verify/oracles/verdict.h"

namespace ferry::verify {

std::optional<Verdict> judge_refusals();

}  // namespace ferry::verify
