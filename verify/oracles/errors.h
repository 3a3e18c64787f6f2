// Errors: a run raises the same ones as the run that keeps every tensor; and where a call or an
// allocation is made to fail, the cause reaches whoever called.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/run/training/result.h"
#include "verify/oracles/verdict.h"

namespace ferry::verify {

// Returns an empty text where the errors are alike.
std::string first_difference(const std::vector<std::string>& keep,
                             const std::vector<std::string>& run);
// Whether the message is that of a call or an allocation that was made to fail.
bool is_told_failure(const std::string& message);

// Judges a run in which a call or an allocation failed, beside the one that keeps every tensor. One
// call of the program may fail for it, and so may those that need its results: then the cause is
// told. Or the core had another way: then nothing shows.
std::optional<Verdict> judge_failure(const sim::Simulation& keep, const sim::Simulation& run);

}  // namespace ferry::verify
