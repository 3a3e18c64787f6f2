// Runs that are drawn: a seed and a number give a run spec, which is tried at once.
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
  bool chosen = false;       // other answers than failures were drawn
  bool failed = false;       // a call or an allocation failed
  std::int64_t runs = 1;     // more where every way, or order, was tried
  std::int64_t classes = 0;  // of orders, where each was tried
  bool cut_off = false;      // not every one was tried
};

// Draws a trial. The spec has no deviations.
RunSpec draw_spec(const CoreTrials& core, const Mutant& mutant, Draws& draws,
                  Sizes sizes = Sizes::kMixed);

// Draws a spec and tries it. In half of the runs the choices are drawn as well, and in some a call
// or an allocation fails: the spec then has the answers that were drawn.
DrawnRun try_drawn(const CoreTrials& core, const Mutant& mutant, std::uint64_t seed,
                   std::uint64_t number, StreamOpConsumer* watch = nullptr,
                   Sizes sizes = Sizes::kMixed);

// What is drawn for a scheduler beside the random step.
struct SchedulerDraws {
  bool usual = false;  // nothing: the usual answers, and segments as the program says
  Sizes sizes = Sizes::kMixed;
};

// Draws a spec with a random step for a scheduler, and the plan of its segments. It has no
// deviations.
RunSpec draw_spec(const HuntedScheduler& scheduler, std::uint64_t number, Draws& draws,
                  const SchedulerDraws& what);
// Draws a spec and tries it, with answers drawn as for the core. A call or an allocation fails for
// a scheduler that survives failures.
DrawnRun try_drawn(const HuntedScheduler& scheduler, std::uint64_t seed, std::uint64_t number,
                   const SchedulerDraws& what = {}, StreamOpConsumer* watch = nullptr);

}  // namespace ferry::verify
