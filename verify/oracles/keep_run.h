// The run that a trial is compared with. It keeps every tensor and recomputes nothing. The judged
// run must have the same gradients and errors.
#pragma once

#include <memory>

#include "formats/program.h"
#include "formats/stream_op.h"
#include "scenarios/hardware.h"
#include "sim/choices/choices.h"
#include "sim/run/training/options.h"
#include "sim/run/training/result.h"
#include "verify/oracles/lifespans.h"

namespace ferry::verify {

// Conditions of a run that are not part of the trial. If `choices` make a call or an allocation
// fail, calls of the program may end early. Then judge_failure (errors.h) judges the run.
struct Conditions {
  choices::Choices* choices = nullptr;
  StreamOpConsumer* watch = nullptr;
};

// Runs the program with everything kept and nothing recomputed. It does not check stream order,
// because only the results are used. `prepared`: see sim::SimulationOptions. `lifespans` watches
// the run; it may be null.
sim::Simulation run_that_keeps(const Program& program, const Hardware& hardware,
                               std::shared_ptr<const sim::Prepared> prepared,
                               Lifespans* lifespans = nullptr);

// Returns true if a call was made to fail, or if an allocation failed.
bool struck(const sim::Simulation& run, const Conditions& conditions);

}  // namespace ferry::verify
