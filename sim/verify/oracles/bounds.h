// Resource bounds: the forward stash within its window, the backward stash within what is
// prefetched, held, and at hand.
#pragma once

#include <cstdint>
#include <optional>

#include "shared/seam/options.h"
#include "sim/verify/oracles/verdict.h"

namespace ferry::verify {

// `largest` is the size of the program's largest storage.
std::optional<Verdict> judge_bounds(const CoreOptions& options, const OffloadStatistics& counts,
                                    std::int64_t largest);

}  // namespace ferry::verify
