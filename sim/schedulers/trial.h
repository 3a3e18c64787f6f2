// One scheduler on one random step, and what the oracles say.
#pragma once

#include <cstdint>
#include <optional>

#include "formats/program.h"
#include "sim/oracles/verdict.h"
#include "sim/schedulers/registry.h"
#include "sim/verify/recipe.h"

namespace ferry::sim {

// Of the recipe, without what the scheduler was never made for; or, where the entry has programs of
// its own, the one of that number.
Program scheduler_program(const SchedulerEntry& entry, verify::Recipe recipe, std::uint64_t number);
// Depends on the entry, the seed and the number alone.
Program scheduler_program(const SchedulerEntry& entry, std::uint64_t number,
                          std::uint64_t seed = 0);

// The first oracle that says no. Errors and gradients must be those of a run that keeps every
// tensor and recomputes nothing.
std::optional<verify::Verdict> try_scheduler(const SchedulerEntry& entry, const Program& program,
                                             StreamOpConsumer* watch = nullptr);

}  // namespace ferry::sim
