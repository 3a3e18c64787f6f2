// Every order of a pipeline's turns (of its workers, and of the engine's threads in backward), one
// run for each class of orders that are alike (sim/choices/turn_orders.h).
#pragma once

#include <cstdint>
#include <functional>

#include "verify/campaign/drawn_run.h"

namespace ferry::verify {

// The spec's pipeline with as few turns as show it: one step and one backward, of two micro-batches
// or, where stages are interleaved, one for each device.
RunSpec in_few_turns(RunSpec spec);

// Tries the spec in at most `most` runs, until an oracle objects or `late` returns true.
DrawnRun try_every_order(RunSpec spec, std::uint64_t most, StreamOpConsumer* watch,
                         const std::function<bool()>& late);

}  // namespace ferry::verify
