// `ferry replay SNAPSHOT`: a PyTorch memory snapshot through the simulated allocator.
#pragma once

#include <string>

#include "cli/console/exit_codes.h"

namespace ferry::cli {

// Whether it is a file that begins as a pickle does.
bool is_snapshot(const std::string& path);

// Prints that both did the same, or the first difference; kOk or kDiffers. Throws InputError.
ExitCode replay_snapshot(const std::string& path, bool json);

}  // namespace ferry::cli
