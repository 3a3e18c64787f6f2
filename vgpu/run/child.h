// The Python process on the virtual GPU.
#pragma once

#include <filesystem>

#include "vgpu/run/options.h"

namespace ferry::vgpu {

// Why it cannot be started here, "" if it can: a real GPU, a missing file of ours.
std::string why_not(const Options& options, const std::filesystem::path& libraries);

// Runs the script to its end, with its log in that file. Returns its exit status; ended by a
// signal, kStoppedBase and the signal. Ctrl-C reaches it, and it is waited for. Throws
// std::system_error if there is no such interpreter.
int run_script(const Options& options, const std::filesystem::path& libraries,
               const std::filesystem::path& log);

}  // namespace ferry::vgpu
