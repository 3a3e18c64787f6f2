// A run spec has everything that one run of the verifier depends on: the core, mutant or scheduler
// that is tried, the trial, and the answers to all that CUDA and PyTorch leave open. Equal specs
// give equal verdicts. So a spec can be shrunk (shrink_spec.h), written down (replay_line.h) and
// replayed.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/choices/choices.h"
#include "sim/gpu/machine.h"
#include "verify/hunted/hunted.h"
#include "verify/mutants/mutants.h"
#include "verify/oracles/keep_run.h"
#include "verify/oracles/verdict.h"
#include "verify/programs/pipeline_trial.h"
#include "verify/programs/trial.h"

namespace ferry::verify {

struct RunSpec;

// Runs Ferry's core, or a mutant of it. It is an interface, so that a hunt of another scheduler
// does not link the core.
class CoreTrials {
 public:
  virtual ~CoreTrials() = default;
  // Makes the run of a spec that has no scheduler.
  virtual std::optional<Verdict> try_spec(const RunSpec& spec,
                                          const Conditions& conditions) const = 0;
  // Uses parts of the core in ways that no training step does. The number selects how.
  virtual std::optional<Verdict> try_parts(std::uint64_t number) const = 0;
};

struct RunSpec {
  Mutant mutant = no_mutant();       // its part selects `trial` or `pipeline`
  const CoreTrials* core = nullptr;  // runs the mutant; not owned; null if there is a scheduler
  // Runs instead of the core if it is not null; not owned. It uses the recipe and the plan of
  // `trial`, and none of its options.
  const HuntedScheduler* scheduler = nullptr;
  std::uint64_t number = 0;  // of the program, if the scheduler has its own programs
  Trial trial;
  PipelineTrial pipeline;
  std::vector<choices::Deviation> deviations;

  bool is_pipeline() const { return mutant.part == MutantPart::kPipeline; }
};

// Returns the same run, without the parts of the recipe that the scheduler is not made for.
RunSpec limited(RunSpec spec);

// Makes the run and returns the verdict of the first oracle that objects.
std::optional<Verdict> try_spec(const RunSpec& spec, StreamOpConsumer* watch = nullptr);
// Makes the run with these choices instead of the spec's deviations. Null: all answers are the
// usual ones.
std::optional<Verdict> try_spec(const RunSpec& spec, choices::Choices* choices,
                                StreamOpConsumer* watch);

}  // namespace ferry::verify
