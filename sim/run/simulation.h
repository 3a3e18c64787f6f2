// Simulates a run of a program: its memory, its time, and whether it was safe. A run is one step,
// or several steps of a training; the results are then those of the last step.
//
// The policy is the offloader's options (or none) and what is recomputed. A run is checked, unless
// that is switched off for speed: happens-before over device and host memory, lifetimes, the
// contents of every tensor when it is unpacked, and what is left at the end. Equal inputs give the
// same results, byte for byte.
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
