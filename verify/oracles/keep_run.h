// The run that a trial is judged by: it keeps every tensor and recomputes nothing. And how the
// judged run goes.
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

// How the run goes beside what the trial says. Where `choices` make a call or an allocation fail,
// the program's calls may end early: then gradients are not compared, and errors are counted.
struct Conditions {
  choices::Choices* choices = nullptr;
  StreamOpConsumer* watch = nullptr;
};

// Runs the program as one that keeps everything and recomputes nothing, for its results: hazards
// are not looked for, as nobody reads them. `prepared`: see sim::SimulationOptions. `lifespans`
// watches it; null: nobody does.
sim::Simulation run_that_keeps(const Program& program, const Hardware& hardware,
                               std::shared_ptr<const sim::Prepared> prepared,
                               Lifespans* lifespans = nullptr);

// Whether a call or an allocation was made to fail.
bool struck(const sim::Simulation& run, const Conditions& conditions);

}  // namespace ferry::verify
