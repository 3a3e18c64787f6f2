// Selective checkpoints in the simulator, as `ferry::selective` is in LibTorch: a scope on the tape
// sees each op in forward and in a recompute, and has the core's cache of what is kept
// (shared/checkpoint/selective.h).
//
// A policy is asked by the op's name. Ops that write in place always run. An op that draws random
// numbers and is kept moves the generator on, as if it had run.
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

// By the op's name; others are recomputed.
using OpPolicies = std::map<std::string, CheckpointPolicy, std::less<>>;

// What a checkpoint is given as its context_fn. The tape outlives what that makes.
std::function<CheckpointContexts()> selective(Tape& tape,
                                              std::shared_ptr<const OpPolicies> policies,
                                              const Rules& rules);

}  // namespace ferry::sim
