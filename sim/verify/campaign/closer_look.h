// What is asked of some attempts to which no oracle objects: run again they issue the same
// operations, and in orders of the device that are drawn everybody sees the same values.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/explore/recording.h"
#include "sim/verify/campaign/attempt.h"
#include "sim/verify/campaign/coverage.h"

namespace ferry::verify {

// Makes the attempt twice. Counts the orders that were run.
std::optional<Verdict> look_closer(const Attempt& attempt, Coverage& coverage);

// Of one recording: a random order and one of PCT's. Happens-before has no objection to it.
std::optional<Verdict> try_orders(const explore::Recording& recording, std::uint64_t seed,
                                  Coverage& coverage);

}  // namespace ferry::verify
