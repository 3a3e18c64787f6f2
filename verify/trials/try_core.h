// Runs the core on one trial and asks every oracle about the run.
//
// A second run of the same program keeps every tensor and recomputes nothing: gradients and errors
// of the two must be the same.
#pragma once

#include <memory>
#include <optional>

#include "scenarios/hardware.h"
#include "shared/adaptors/bent.h"
#include "shared/seam/rules.h"
#include "sim/choices/choices.h"
#include "sim/run/simulation.h"
#include "verify/oracles/lifespans.h"
#include "verify/oracles/verdict.h"
#include "verify/programs/trial.h"

namespace ferry::verify {

// Whether the rules of nesting say how often each op of the recipe's program runs
// (verify/oracles/recomputes.h).
bool counts_are_known(const Recipe& recipe);

// The core that is tried: Ferry itself by default, or a mutant of it.
struct Subject {
  Rules rules;
  std::optional<Mutation> mutation;
  sim::WorldFault world_fault = sim::WorldFault::kNoFault;  // not for pipelines
};

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

// Returns the verdict of the first oracle that objects.
std::optional<Verdict> try_core(const Trial& drawn, const Subject& subject = {},
                                const Conditions& conditions = {});

}  // namespace ferry::verify
