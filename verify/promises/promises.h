// What holds whatever the program is, judged by calls of the core's parts made by hand: defaults,
// counts, refusals with their words, shapes, and small things that are drawn from the seed.
#pragma once

#include <cstdint>
#include <optional>

#include "verify/oracles/verdict.h"

namespace ferry::verify {

std::optional<Verdict> judge_promises(std::uint64_t seed);

}  // namespace ferry::verify
