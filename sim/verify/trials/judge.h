// Runs the core on one trial, and asks every oracle.
//
// Beside the run there is one of the same program that keeps every tensor and recomputes nothing:
// gradients and errors must be the same.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenarios/hardware.h"
#include "shared/adaptors/bent.h"
#include "shared/seam/rules.h"
#include "sim/choices/choices.h"
#include "sim/run/simulation.h"
#include "sim/verify/oracles/verdict.h"
#include "sim/verify/programs/trial.h"

namespace ferry::verify {

// Made up, so that copies and kernels take comparable times, and timing does not hide anything.
Hardware test_hardware();

// Whether it is known how often each op of the recipe's program runs
// (sim/verify/oracles/recomputes.h).
bool is_modelled(const Recipe& recipe);

std::vector<std::string> messages(const sim::Simulation& run);
// Empty: the errors are alike.
std::string first_difference(const std::vector<std::string>& keep,
                             const std::vector<std::string>& run);
// Of a call or an allocation that was made to fail.
bool is_told_failure(const std::string& message);

// The first hazard; a value is wrong, two accesses race, or something is used that is not there.
std::optional<Verdict> judge_hazards(const std::vector<check::Hazard>& hazards);

// Of a run in which a call or an allocation failed, beside the one that keeps everything. One call
// of the program may fail for it, and those that need what it would have given: then the cause is
// told. Or the core had another way: then nothing shows.
std::optional<Verdict> judge_failure(const sim::Simulation& keep, const sim::Simulation& run);

// Who is tried: as it is, Ferry itself.
struct Subject {
  Rules rules;
  std::optional<Mutation> mutation;
  sim::WorldFault world = sim::WorldFault::kNoFault;  // beneath it; not for pipelines
};

// Beside what the trial says. A call that fails, or memory that runs out, may end the program's
// calls early: then gradients are not compared, and errors are counted.
struct Conditions {
  choices::Choices* choices = nullptr;
  StreamOpConsumer* watch = nullptr;
};

// The first oracle that says no.
std::optional<Verdict> try_core(const Trial& trial, const Subject& subject = {},
                                const Conditions& conditions = {});

}  // namespace ferry::verify
