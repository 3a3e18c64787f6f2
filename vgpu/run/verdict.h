// What the checkers say of a run's log.
#pragma once

#include <filesystem>
#include <string>

#include "sim/check/trace_check.h"
#include "vgpu/run/one_run.h"

namespace ferry::vgpu {

// `name` is what the log is called in the report, "" if it is not kept. Throws InputError if it is
// no log.
check::TraceReport judge(const std::filesystem::path& log, const std::string& name);

// The violations. On stderr: stdout is the script's.
void print(const check::TraceReport& report, const std::string& name);
// What was judged, and what was not: the last line of a run. On stderr.
void print_verdict(const Run& run, const std::string& name);

}  // namespace ferry::vgpu
