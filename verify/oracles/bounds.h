// Resource bounds: the forward stash within its window, the backward stash within what is
// prefetched, held, and at hand.
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
  std::int64_t largest = 0;  // the size of the program's largest storage
  // How many storages one node may need beside those that it saved: a recompute that it begins
  // takes, of each checkpoint in it, what that kept of its ops.
  std::int64_t kept = 0;
};

std::optional<Verdict> judge_bounds(const CoreOptions& options, const OffloadStatistics& counts,
                                    const ProgramBounds& program);

// The outputs of these ops in all of the program's checkpoints. Each keeps its own, also of an op
// in one around.
std::int64_t outputs_in_checkpoints(const Program& program, const std::set<std::string>& ops);

}  // namespace ferry::verify
