// Checks the offloader's limits on device memory, for try_core.h: the forward stash fits its window
// (or is one larger storage), and the backward stash fits the limits on prefetched and held tensors
// plus the storages that a node needs. Automatic limits are not checked.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "formats/program.h"
#include "shared/seam/options.h"
#include "verify/oracles/verdict.h"

namespace ferry::verify {

struct ProgramBounds {
  std::int64_t largest = 0;  // size of the largest storage
  // Number of storages that one node may need in addition to those that it saved. If the node
  // starts a recompute, each checkpoint in it needs the op results that it kept.
  std::int64_t kept = 0;
};

// Compares the peaks in the statistics with the limits. Returns nothing if they fit.
std::optional<Verdict> judge_bounds(const CoreOptions& options, const OffloadStatistics& counts,
                                    const ProgramBounds& program);

// Counts the outputs of these ops in all checkpoints of the program. A nested checkpoint keeps its
// own, so an op counts once for each checkpoint around it.
std::int64_t outputs_in_checkpoints(const Program& program, const std::set<std::string>& ops);

}  // namespace ferry::verify
