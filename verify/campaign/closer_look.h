// A closer look at some runs to which no oracle objects. Made again, a run must issue the same
// operations; in drawn orders of the device, every access must see the same values; and saved
// tensors are put through what no program does to them.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/explore/recording.h"
#include "verify/campaign/coverage.h"
#include "verify/campaign/run_spec.h"

namespace ferry::verify {

// Makes the run twice. Adds the orders that were tried to the coverage.
std::optional<Verdict> look_closer(const RunSpec& spec, Coverage& coverage);

// Tries a random order of the recording and one of PCT's. Happens-before found no race in it.
std::optional<Verdict> try_orders(const explore::Recording& recording, std::uint64_t seed,
                                  Coverage& coverage);

}  // namespace ferry::verify
