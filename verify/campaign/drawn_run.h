// Random runs: a seed and a number give a run spec (run_spec.h), which is tried at once. Campaigns,
// and the tables of mutants and of other schedulers, consist of such runs.
//
// Equal seeds and numbers give equal runs. The spec records the random answers, so that it can be
// replayed and shrunk.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "sim/choices/choices.h"
#include "verify/campaign/run_spec.h"

namespace ferry::verify {

struct DrawnRun {
  RunSpec spec;
  std::optional<Verdict> verdict;
  std::array<std::uint64_t, choices::kChoicePoints> asked{};
  bool chosen = false;       // some answers other than failures were random
  bool failed = false;       // a call or an allocation failed
  std::int64_t runs = 1;     // more than 1 if all ways or orders were tried
  std::int64_t classes = 0;  // classes of equivalent orders, if all orders were tried
  bool cut_off = false;      // some ways or orders were not tried
};

// Makes a random trial. The spec has no deviations.
RunSpec draw_spec(const CoreTrials& core, const Mutant& mutant, Draws& draws,
                  Sizes sizes = Sizes::kMixed);

// Makes a random spec and tries it. In about half of the runs the answers to choices are random,
// but never if the step itself contains a failing one. In about one run of six, one call or
// allocation is made to fail, if the run has so many of them. The spec records these answers.
DrawnRun try_drawn(const CoreTrials& core, const Mutant& mutant, std::uint64_t seed,
                   std::uint64_t number, StreamOpConsumer* watch = nullptr,
                   Sizes sizes = Sizes::kMixed);

// Says what is random for a scheduler, apart from the training step.
struct SchedulerDraws {
  bool usual = false;  // nothing: the answers are the usual ones, and no plan changes the segments
  Sizes sizes = Sizes::kMixed;
};

// Makes a spec with a random step for a scheduler, and a random plan of its segments. It has no
// deviations.
RunSpec draw_spec(const HuntedScheduler& scheduler, std::uint64_t number, Draws& draws,
                  const SchedulerDraws& what);
// Makes a random spec and tries it, with random answers as for the core. A call or an allocation
// may fail only if the scheduler declares `survives_failures`.
DrawnRun try_drawn(const HuntedScheduler& scheduler, std::uint64_t seed, std::uint64_t number,
                   const SchedulerDraws& what = {}, StreamOpConsumer* watch = nullptr);

}  // namespace ferry::verify
