// Which layers of a trial are checkpoints, where its layers are a chain, and what selective
// checkpoints keep: as the core has it, and as it must be.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "shared/seam/rules.h"
#include "sim/run/simulation.h"
#include "verify/programs/trial.h"

namespace ferry::verify {

// Returns the trial with its chain cut as checkpoint_sequential does. `right`: its recipe as it
// must then be.
Trial in_chain(const Trial& trial, const Rules& rules, Recipe& right);

// What selective checkpoints of the program do with its ops; null: they are not selective. `known`:
// whether the model of nesting says which op a recompute comes to. Where it does not, no op is kept
// that is written later.
std::shared_ptr<const sim::OpPolicies> policies_of(const Trial& trial, const Program& program,
                                                   bool known);
// The ops whose outputs these keep, and those of them whose outputs may move.
std::set<std::string> kept_ops(const sim::SimulationOptions& options);
std::set<std::string> moved_ops(const sim::SimulationOptions& options);

}  // namespace ferry::verify
