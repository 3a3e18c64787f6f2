// Judges the log of a run with the checkers of `ferry check` (sim/check), and prints what they
// found. All output goes to stderr, because stdout is the script's.
#pragma once

#include <filesystem>
#include <string>

#include "sim/check/log_check.h"
#include "sim/peak/log_peak.h"
#include "vgpu/run/one_run.h"

namespace ferry::vgpu {

// `name` is what the log is called in the report; "" if the log is not kept. `also` receives each
// operation. Throws InputError if the file is not a valid log.
check::LogReport judge(const std::filesystem::path& log, const std::string& name,
                       StreamOpConsumer& also);

// Prints who made the peak of memory, in at most eight lines; nothing for a peak below 16 MiB.
void print(const peak::LogPeak& peak);
// Prints the violations, and what was not judged.
void print(const check::LogReport& report, const std::string& name);
// Prints the last line of a run: what was judged, and what was not.
void print_verdict(const Run& run, const std::string& name);

}  // namespace ferry::vgpu
