// Checks the errors of a run. They must be those of the run that keeps every tensor. If a call or
// an allocation is made to fail, the cause must reach the caller.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/run/training/result.h"
#include "verify/oracles/verdict.h"

namespace ferry::verify {

// Returns the first error that differs, or an empty text.
std::string first_difference(const std::vector<std::string>& keep,
                             const std::vector<std::string>& run);
// Returns true if the message reports a call or an allocation that was made to fail.
bool is_told_failure(const std::string& message);

// Judges a run in which a call or an allocation failed. Either the cause is reported: then one call
// of the program, and the calls that need its results, may fail. Or the core recovered: then the
// run must equal the run that keeps every tensor.
std::optional<Verdict> judge_failure(const sim::Simulation& keep, const sim::Simulation& run);

}  // namespace ferry::verify
