// Tries one scheduler on one random step and asks the oracles.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "formats/program.h"
#include "shared/seam/checkpoint_options.h"
#include "sim/verify/hunted/hunted.h"
#include "sim/verify/oracles/verdict.h"
#include "sim/verify/programs/trial.h"
#include "sim/verify/trials/try_core.h"

namespace ferry::verify {

// Makes the trial's program, without what the scheduler was not made for. Where the scheduler has
// own programs, it returns the one of that number.
Program scheduler_program(const HuntedScheduler& scheduler, Trial trial, std::uint64_t number);
// Depends on the scheduler's limits, the seed and the number alone.
Program scheduler_program(const HuntedScheduler& scheduler, std::uint64_t number,
                          std::uint64_t seed = 0);

// Returns the first oracle's verdict. Errors and gradients must be those of a run that keeps every
// tensor and recomputes nothing. `plan`: of the program's segments; null: they are as it says.
std::optional<Verdict> try_scheduler(const HuntedScheduler& scheduler, const Program& program,
                                     const Conditions& conditions = {},
                                     const std::shared_ptr<const SegmentPlan>& plan = nullptr);

}  // namespace ferry::verify
