// One scheduler on one random step, and what the oracles say.
#pragma once

#include <cstdint>
#include <optional>

#include "formats/program.h"
#include "sim/oracles/verdict.h"
#include "sim/schedulers/registry.h"

namespace ferry::sim {

// Depends on the entry and the number alone.
Program scheduler_program(const SchedulerEntry& entry, std::uint64_t number);

// The first oracle that says no. Errors and gradients must be those of a run that keeps every
// tensor and recomputes nothing.
std::optional<verify::Verdict> try_scheduler(const SchedulerEntry& entry, const Program& program);

}  // namespace ferry::sim
