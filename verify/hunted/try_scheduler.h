// Tries one scheduler on one random step and asks the oracles.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "formats/program.h"
#include "shared/seam/checkpoint_options.h"
#include "verify/hunted/hunted.h"
#include "verify/oracles/keep_run.h"
#include "verify/oracles/verdict.h"
#include "verify/programs/trial.h"

namespace ferry::verify {

// What one run is of.
struct SchedulerStep {
  Program program;
  std::shared_ptr<const SegmentPlan> plan = nullptr;  // null: segments are as the program says
};

// The trial's, without what the scheduler was not made for. Where the scheduler has own programs,
// the one of that number.
SchedulerStep scheduler_step(const HuntedScheduler& scheduler, Trial trial, std::uint64_t number);
// Depends on the scheduler's limits, the seed and the number alone; it has no plan.
SchedulerStep scheduler_step(const HuntedScheduler& scheduler, std::uint64_t number,
                             std::uint64_t seed = 0);

// Returns the first oracle's verdict. Errors and gradients must be those of a run that keeps every
// tensor and recomputes nothing.
std::optional<Verdict> try_scheduler(const HuntedScheduler& scheduler, const SchedulerStep& step,
                                     const Conditions& conditions = {});

}  // namespace ferry::verify
