// Cuts the chain of a trial into checkpoints, as the core cuts it and as it must be cut. Also says
// which operators' outputs selective checkpoints keep. try_core.h runs the core's cut, and expects
// the counts of the right one.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "shared/seam/rules.h"
#include "sim/run/simulation.h"
#include "verify/programs/trial.h"

namespace ferry::verify {

// Returns the trial with its chain cut as the core's checkpoint_sequential cuts it. `right` gets
// the recipe with the right cut.
Trial in_chain(const Trial& trial, const Rules& rules, Recipe& right);

// Returns the policy of selective checkpoints for each op; null if the trial has none. `known` says
// if the model of nesting knows which ops a recompute reaches. If not, no op is kept that is
// written later.
std::shared_ptr<const sim::OpPolicies> policies_of(const Trial& trial, const Program& program,
                                                   bool known);
// Return the ops whose outputs selective checkpoints keep, and those of them whose outputs may
// move.
std::set<std::string> kept_ops(const sim::SimulationOptions& options);
std::set<std::string> moved_ops(const sim::SimulationOptions& options);

}  // namespace ferry::verify
