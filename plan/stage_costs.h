// Estimates the time and memory of a program's units, without a simulation, and divides the units
// into balanced pipeline stages (pipeline_planner.h). The estimates only choose where to cut: the
// planner simulates the stages afterwards. The program's main code must be one call and one
// backward; otherwise the estimates throw std::invalid_argument.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "formats/stages.h"
#include "scenarios/hardware.h"
#include "sim/run/simulation.h"

namespace ferry::plan {

// Returns the time of each unit's forward and backward, in ns. An operator takes as long as its
// kernel or, if longer, as its launch by the host. Recomputes of checkpoints are not counted.
std::vector<std::int64_t> unit_times(const Program& program, const std::vector<StageUnit>& units,
                                     const Hardware& hardware);

// Returns the bytes of each unit: the storages that it is the first to save, for each of `alive`
// micro-batches (a checkpoint saves its inputs), and the parameters that it is the first to use,
// with their gradients and the optimizer's state.
std::vector<std::int64_t> unit_bytes(const Program& program, const std::vector<StageUnit>& units,
                                     sim::Optimizer optimizer, std::size_t alive);

// Returns the number of units of each stage. The most expensive stage costs as little as possible
// (shared/pipeline/balance.h). Among such divisions it takes the one with the least sum of squares,
// so that the smaller stages are equal too and need no more memory than necessary. Throws what
// `balance` throws.
std::vector<std::size_t> even_stages(const std::vector<std::int64_t>& costs, std::size_t stages);

}  // namespace ferry::plan
