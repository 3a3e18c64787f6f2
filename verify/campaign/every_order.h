// Runs a pipeline in every order of its turns, for `ferry verify --every-order`. A turn belongs to
// a worker or, in backward, to a thread of the engine. Equivalent orders form a class, and one
// order of each class runs (sim/choices/turn_orders.h). The number of classes grows very fast with
// the number of turns, so the pipeline must be small.
#pragma once

#include <cstdint>
#include <functional>

#include "verify/campaign/drawn_run.h"

namespace ferry::verify {

// Returns the spec with few turns: one step, one backward and at most two micro-batches, or one
// micro-batch for each device if the stages are interleaved. Also removes writes that must be
// rejected (PipelineTrial::drop_refused).
RunSpec in_few_turns(RunSpec spec);

// Tries the spec in at most `most` runs. It stops when an oracle objects or `late` returns true.
DrawnRun try_every_order(RunSpec spec, std::uint64_t most, StreamOpConsumer* watch,
                         const std::function<bool()>& late);

}  // namespace ferry::verify
