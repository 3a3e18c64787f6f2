// Runs one scheduler on one random step, and asks the oracles: hazards, errors, gradients, leaks,
// and the promises of HuntedScheduler. Campaigns and hunts call it through try_spec
// (verify/campaign/run_spec.h).
//
// The scheduler runs in the place of Ferry's offloader; checkpoints in the step are Ferry's own.
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

// The program of a run, and the plan of its segments.
struct SchedulerStep {
  Program program;
  std::shared_ptr<const SegmentPlan> plan = nullptr;  // null: the program's own segments
};

// Returns the trial's step without what the scheduler does not support. If the scheduler has its
// own programs, returns the program with this number.
SchedulerStep scheduler_step(const HuntedScheduler& scheduler, Trial trial, std::uint64_t number);
// Makes a random step, without a plan. It depends only on the scheduler's limits, the seed and the
// number.
SchedulerStep scheduler_step(const HuntedScheduler& scheduler, std::uint64_t number,
                             std::uint64_t seed = 0);

// Returns the verdict of the first oracle that objects, or nothing. Errors and gradients must be
// those of a run that keeps every tensor and recomputes nothing. If a call or an allocation failed,
// judge_failure (verify/oracles/errors.h) judges the run instead.
std::optional<Verdict> try_scheduler(const HuntedScheduler& scheduler, const SchedulerStep& step,
                                     const Conditions& conditions = {});

}  // namespace ferry::verify
