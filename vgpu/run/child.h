// The Python process on the virtual GPU.
#pragma once

#include <filesystem>

#include "vgpu/run/options.h"

namespace ferry::vgpu {

// Why it cannot be started here, "" if it can: a real GPU, a missing file of ours.
std::string why_not(const Options& options, const std::filesystem::path& libraries);

struct Files {
  std::filesystem::path log;
  std::filesystem::path summary;  // how long it took, on the card (summary.h)
  std::filesystem::path asking;   // who asked for a device and has none (ending.h)
  std::filesystem::path output;   // what the script prints; "": where we print
};

// Runs the script in this setting to its end, and leaves these files. Returns its exit status;
// ended by a signal, kStoppedBase and the signal. Ctrl-C reaches it, SIGTERM and SIGHUP are passed
// on to it, and it is waited for. Throws std::system_error if there is no such interpreter.
int run_script(const Options& options, const Setting& setting,
               const std::filesystem::path& libraries, const Files& files);

}  // namespace ferry::vgpu
