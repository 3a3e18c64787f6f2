// What a search tries: fixed lists that do not depend on the budget.
#pragma once

#include <optional>
#include <vector>

#include "shared/seam/options.h"
#include "sim/plan/mix.h"
#include "sim/plan/survey.h"

namespace ferry::plan {

// A way to run the step.
struct Candidate {
  std::optional<CoreOptions> options;  // none: nothing moves
  Mix mix;
  bool trl = false;  // TRL's scheduler in the core's place (sim/field/stash.h)
};

// Everything moves, by TRL.
Candidate offload_all(const Survey& survey);
// Everything moves, by the core with its defaults.
Candidate offload(const Survey& survey);
// Nothing moves; shares of what is saved first move, with windows.
std::vector<Candidate> offload_candidates(const Survey& survey);

Candidate recompute_all(const Survey& survey);
// From none to all, evenly spread.
std::vector<Candidate> recompute_candidates(const Survey& survey);
// All, with shares of their inputs offloaded, the first ones first; the windows.
std::vector<Candidate> recompute_and_offload_candidates(const Survey& survey);
// And all of the above, so that no other row that fits is faster.
std::vector<Candidate> mixed_candidates(const Survey& survey);

}  // namespace ferry::plan
