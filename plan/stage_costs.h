// The costs of a program's units to a pipeline stage, for balancing: an estimate made without a
// run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "formats/stages.h"
#include "scenarios/hardware.h"
#include "sim/run/simulation.h"

namespace ferry::plan {

// Nanoseconds of a forward and a backward: an op takes as long as its kernel or, if longer, as the
// host takes to launch it. Recomputes of the program's own checkpoints are left out.
std::vector<std::int64_t> unit_times(const Program& program, const std::vector<StageUnit>& units,
                                     const Hardware& hardware);

// Bytes of the storages that the unit is the first to save, once for each of `alive` micro-batches
// (a checkpoint of the program's own saves its inputs); plus the parameters that it is the first to
// use, with their gradients and the optimizer's state.
std::vector<std::int64_t> unit_bytes(const Program& program, const std::vector<StageUnit>& units,
                                     sim::Optimizer optimizer, std::size_t alive);

// The number of units of each stage: the most expensive stage costs as little as possible
// (shared/pipeline/balance.h), and among equals the stages are most alike (the least sum of
// squares), so that a stage which waits for the largest one needs no more memory than it must.
// Throws what balance throws.
std::vector<std::size_t> even_stages(const std::vector<std::int64_t>& costs, std::size_t stages);

}  // namespace ferry::plan
