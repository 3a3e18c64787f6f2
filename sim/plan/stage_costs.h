// What the units of a program cost a pipeline stage, to balance the stages by: a measure, made
// without a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "formats/stages.h"
#include "scenarios/hardware.h"
#include "sim/run/simulation.h"

namespace ferry::plan {

// Nanoseconds of a forward and a backward: each op takes as long as its kernel or, where that is
// longer, the host takes to launch it. Recomputes of the program's own checkpoints are not in it.
std::vector<std::int64_t> unit_times(const Program& program, const std::vector<StageUnit>& units,
                                     const Hardware& hardware);

// Bytes: of the storages that the unit is the first to save, once for each of `alive` micro-batches
// (a checkpoint of the program's own saves what it is handed); and of the parameters that it is the
// first to use, with their gradients and the optimizer's state.
std::vector<std::int64_t> unit_bytes(const Program& program, const std::vector<StageUnit>& units,
                                     sim::Optimizer optimizer, std::size_t alive);

// How many units each stage gets: the largest stage costs as little as may be
// (shared/pipeline/balance.h), and of the answers that are equally good this is the one whose
// stages are most alike (the least sum of squares). A stage that waits for the largest one needs no
// more memory than it must. Throws what balance does.
std::vector<std::size_t> even_stages(const std::vector<std::int64_t>& costs, std::size_t stages);

}  // namespace ferry::plan
