// More checks for some of the runs to which no oracle objects. Campaigns make them for about one
// program in 32. Reports and shrinking make them to find such a failure again.
//
// * The same run is made again, and must issue the same operations.
// * The device executes the recorded operations in random orders, and every access must see the
//   same values.
// * If the core is tried, parts of it are also used in ways that no training step uses them.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/explore/recording.h"
#include "verify/campaign/coverage.h"
#include "verify/campaign/run_spec.h"

namespace ferry::verify {

// Makes the run twice, and returns the first objection of these checks. Adds the orders that it
// tried to `coverage`.
std::optional<Verdict> look_closer(const RunSpec& spec, Coverage& coverage);

// Tries two orders of the recording: a random one and one of PCT (sim/choices/strategies.h). The
// recording must have no race that happens-before finds.
std::optional<Verdict> try_orders(const explore::Recording& recording, std::uint64_t seed,
                                  Coverage& coverage);

}  // namespace ferry::verify
