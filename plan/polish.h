// Makes a plan that fits do less: keeps what it recomputes or moves, one segment or one storage at
// a time, as long as the step still fits and gets faster. A search by rungs leaves memory over that
// no rung of its ways uses.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "plan/candidates.h"
#include "plan/picks.h"
#include "plan/trials.h"

namespace ferry::plan {

// The plans that do one thing less.
std::vector<Candidate> with_less(const Candidate& candidate, const Survey& survey);

// From the best `starts` of the trials that differ in what they recompute, at most so many times;
// from fewer where the first gain little. Of the plans that do one thing less it tries those that
// may fit and have the lowest floors.
void polish(std::string_view what, const Problem& problem, const Limits& limits, std::size_t rounds,
            std::size_t starts, Trials& trials);

}  // namespace ferry::plan
