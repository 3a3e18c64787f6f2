// `ferry replay SNAPSHOT`: replays a PyTorch memory snapshot on the simulated allocator, and
// compares every address. So a user can see whether the simulator's memory figures hold for their
// training. sim/gpu/snapshot_replay.h has the replay.
//
// A snapshot does not name its PyTorch version, so the allocators of several versions are tried.
#pragma once

#include <string>

#include "cli/console/exit_codes.h"

namespace ferry::cli {

// True if the file begins like a pickle.
bool is_snapshot(const std::string& path);

// Prints that both did the same, or the first difference. Returns kOk, kDiffers, or kUsage if the
// start of the history is not known. Throws InputError.
ExitCode replay_snapshot(const std::string& path, bool json);

}  // namespace ferry::cli
