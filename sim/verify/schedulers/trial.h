// One scheduler on one random step, and what the oracles say.
#pragma once

#include <cstdint>
#include <optional>

#include "formats/program.h"
#include "sim/verify/oracles/verdict.h"
#include "sim/verify/programs/recipe.h"
#include "sim/verify/schedulers/registry.h"

namespace ferry::verify::schedulers {

// Of the recipe, without what the scheduler was never made for; or, where the entry has programs of
// its own, the one of that number.
Program scheduler_program(const SchedulerEntry& entry, Recipe recipe, std::uint64_t number);
// Depends on the entry, the seed and the number alone.
Program scheduler_program(const SchedulerEntry& entry, std::uint64_t number,
                          std::uint64_t seed = 0);

// The first oracle that says no. Errors and gradients must be those of a run that keeps every
// tensor and recomputes nothing.
std::optional<Verdict> try_scheduler(const SchedulerEntry& entry, const Program& program,
                                     StreamOpConsumer* watch = nullptr);

}  // namespace ferry::verify::schedulers
