// What the checkers say of a run's log.
#pragma once

#include <filesystem>
#include <string>

#include "sim/check/trace_check.h"

namespace ferry::vgpu {

// `name` is what the log is called in the report, "" if it is not kept. Throws InputError if it is
// no log.
check::TraceReport judge(const std::filesystem::path& log, const std::string& name);

// On stderr: stdout is the script's.
void print(const check::TraceReport& report, const std::string& name);

}  // namespace ferry::vgpu
