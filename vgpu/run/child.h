// Starts the Python process that runs the script on the virtual GPU, and waits for it. The process
// gets Ferry's CUDA runtime by LD_PRELOAD and its settings as JSON in $FERRY_VIRTUAL_GPU
// (vgpu/python/launch.py). It leaves its results in files, so they are there even if it is killed.
#pragma once

#include <filesystem>

#include "vgpu/run/options.h"

namespace ferry::vgpu {

// Returns why the script cannot be started here (a real GPU, a missing file of Ferry's), or "" if
// it can.
std::string why_not(const Options& options, const std::filesystem::path& libraries);

struct Files {
  std::filesystem::path log;
  std::filesystem::path summary;  // time and memory of the run (summary.h)
  std::filesystem::path asking;   // processes that asked for a device and have none (ending.h)
  std::filesystem::path output;   // the script's output; "": the output of ferry-run
};

// Runs the script in this setting to its end, which leaves these files. Returns its exit status, or
// kStoppedBase plus the signal that ended it, or kResourceMissing if there is no such interpreter.
// Ctrl-C reaches the script, and SIGTERM and SIGHUP are passed on to it; this process waits for it.
// Throws std::system_error if no process can be started.
int run_script(const Options& options, const Setting& setting,
               const std::filesystem::path& libraries, const Files& files);

}  // namespace ferry::vgpu
