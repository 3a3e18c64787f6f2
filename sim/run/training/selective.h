// Selective checkpoints in the simulator, like `ferry::selective` in LibTorch, for the policy
// `selective` of `ferry plan` and for random programs. A scope on the tape
// sees each op in forward and in a recompute, and uses the core's cache of kept results
// (shared/checkpoint/selective.h).
//
// The policy depends on the op's name. Ops that write in place always run. If the results of an op
// with random numbers were kept, a recompute advances the generator as if the op had run.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "shared/checkpoint/selective.h"
#include "shared/seam/checkpoint_options.h"
#include "shared/seam/rules.h"
#include "sim/program/tape.h"

namespace ferry::sim {

// Policies by the op's name. Other ops are recomputed.
using OpPolicies = std::map<std::string, CheckpointPolicy, std::less<>>;

// Returns a context_fn for checkpoints. The tape must outlive what it makes.
std::function<CheckpointContexts()> selective(Tape& tape,
                                              std::shared_ptr<const OpPolicies> policies,
                                              const Rules& rules);

}  // namespace ferry::sim
