// A run spec: everything that one run of the verifier depends on. It names who is tried, on which
// trial, and the answers to all that CUDA and PyTorch leave open. Equal specs give equal verdicts,
// so a spec is what is shrunk (shrink_spec.h), written down (replay_line.h) and replayed.
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

// Tries Ferry's core, or a mutant of it, on trials. A hunt of another scheduler has none of these,
// and links no core.
class CoreTrials {
 public:
  virtual ~CoreTrials() = default;
  // Makes the run of a spec that has no scheduler.
  virtual std::optional<Verdict> try_spec(const RunSpec& spec,
                                          const Conditions& conditions) const = 0;
  // Puts parts of the core through what no program does to them; the number draws what.
  virtual std::optional<Verdict> try_parts(std::uint64_t number) const = 0;
};

struct RunSpec {
  Mutant mutant = no_mutant();       // its part says which of the two trials is meant
  const CoreTrials* core = nullptr;  // runs the mutant; not owned, null where there is a scheduler
  // If not null, it runs in the core's stead: what the spec does not own. Of the trial it has the
  // random step and the plan, and no options.
  const HuntedScheduler* scheduler = nullptr;
  std::uint64_t number = 0;  // of the scheduler's own program, if it has programs of its own
  Trial trial;
  PipelineTrial pipeline;
  std::vector<choices::Deviation> deviations;

  bool is_pipeline() const { return mutant.part == MutantPart::kPipeline; }
};

// The same run, whose recipe says no more than what its scheduler is given of it.
RunSpec limited(RunSpec spec);

// Makes the run and returns the verdict of the first oracle that objects.
std::optional<Verdict> try_spec(const RunSpec& spec, StreamOpConsumer* watch = nullptr);
// Makes the run with these choices in place of the spec's deviations; null: with the usual answers.
std::optional<Verdict> try_spec(const RunSpec& spec, choices::Choices* choices,
                                StreamOpConsumer* watch);

}  // namespace ferry::verify
