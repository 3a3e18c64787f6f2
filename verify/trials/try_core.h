// Runs the core on one trial and asks the oracles about the run. Campaigns call it for each
// program that is no pipeline (verify/core/core_trials.cpp).
//
// A second run of the same program keeps every tensor and recomputes nothing. Both runs must have
// the same gradients and errors. There are other rules if a call or an allocation is made to fail
// (errors.h), or if the step writes to a saved tensor (versions.h, recomputes.h). An oracle that
// models only some programs is not asked about the others.
#pragma once

#include <optional>

#include "shared/adaptors/bent.h"
#include "shared/seam/rules.h"
#include "sim/run/simulation.h"
#include "verify/oracles/keep_run.h"
#include "verify/oracles/verdict.h"
#include "verify/programs/trial.h"

namespace ferry::verify {

// Returns true if the rules of nesting say how often each op of the recipe's program runs
// (verify/oracles/recomputes.h).
bool counts_are_known(const Recipe& recipe);

// The core that is tried: Ferry's own by default, or a mutant of it.
struct Subject {
  Rules rules;
  std::optional<Mutation> mutation;
  sim::WorldFault world_fault = sim::WorldFault::kNoFault;  // not for pipelines
};

// Returns the verdict of the first oracle that objects, or nothing.
std::optional<Verdict> try_core(const Trial& drawn, const Subject& subject = {},
                                const Conditions& conditions = {});

}  // namespace ferry::verify
