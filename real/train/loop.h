// The training: steps of forward, backward and AdamW, under a policy.
//
// Algorithms are deterministic. So the bits of a step depend only on the state before it, and every
// policy gives the same bits. The state is saved only between steps.
#pragma once

#include "real/train/options.h"

namespace ferry::real::train {

// Trains and prints the reports. Returns the exit code: kOk, or kStopped plus the signal. Throws
// InputError for bad input, and what LibTorch and the machine throw.
int train(const Options& options);

}  // namespace ferry::real::train
