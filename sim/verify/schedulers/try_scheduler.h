// Tries one scheduler on one random step and asks the oracles.
#pragma once

#include <cstdint>
#include <optional>

#include "formats/program.h"
#include "sim/verify/oracles/verdict.h"
#include "sim/verify/programs/recipe.h"
#include "sim/verify/schedulers/registry.h"

namespace ferry::verify::schedulers {

// Makes the recipe's program, without what the scheduler was not made for. Where the entry has own
// programs, it returns the one of that number.
Program scheduler_program(const SchedulerEntry& entry, Recipe recipe, std::uint64_t number);
// Depends on the entry, the seed and the number alone.
Program scheduler_program(const SchedulerEntry& entry, std::uint64_t number,
                          std::uint64_t seed = 0);

// Returns the first oracle's verdict. Errors and gradients must be those of a run that keeps every
// tensor and recomputes nothing.
std::optional<Verdict> try_scheduler(const SchedulerEntry& entry, const Program& program,
                                     StreamOpConsumer* watch = nullptr);

}  // namespace ferry::verify::schedulers
