// The training itself: steps of forward, backward and AdamW, under a policy.
//
// Deterministic algorithms are on, so a step's bits depend on the state before it alone, and every
// policy computes the same ones. The state is saved between steps only.
#pragma once

#include "real/train/options.h"

namespace ferry::real::train {

// Returns the exit code: kOk, or kStopped plus the signal. Prints the reports. Throws InputError
// for bad input, and what LibTorch and the machine throw.
int train(const Options& options);

}  // namespace ferry::real::train
