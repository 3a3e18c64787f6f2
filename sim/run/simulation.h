// One simulated run of a program: its memory, its time, and whether it was safe. A run is a step,
// or some steps of a training; what is told then is of the last one.
//
// The policy is the offloader's options, or none, and what is recomputed. A run is checked, unless
// that is switched off for speed: happens-before over device and host memory, lifetimes, the
// contents of every saved tensor when it comes back, and what is left at the end. Equal inputs give
// equal bytes.
#pragma once

#include "formats/program.h"
#include "scenarios/hardware.h"
#include "sim/run/training/options.h"
#include "sim/run/training/result.h"
#include "sim/run/training/run_training.h"

namespace ferry::sim {

Simulation simulate(const Program& program, const Hardware& hardware,
                    const SimulationOptions& options);

}  // namespace ferry::sim
