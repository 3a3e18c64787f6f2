// Checks the errors of a run, for runs of the core and of other schedulers. They must be those of
// the run that keeps every tensor. If a call or an allocation is made to fail, the cause must reach
// the caller, or the run must go on as if nothing had failed.
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

// Judges a run in which a call or an allocation failed. There must be no hazard and no leak. Either
// the cause is reported: then there may be up to three errors more than in the run that keeps every
// tensor, because calls fail that need the results of the failed one, and gradients are not
// compared. Or the core recovered: then errors and gradients must equal those of that run.
std::optional<Verdict> judge_failure(const sim::Simulation& keep, const sim::Simulation& run);

}  // namespace ferry::verify
