// What to type and to write to carry out the answer of `ferry plan`.
#pragma once

#include <string>
#include <vector>

#include "cli/policies.h"
#include "plan/planner.h"

namespace ferry::cli {

// The command that writes the plan, if none was written, and the lines of a training that runs it.
// Empty: nothing fits, or the answer keeps everything.
std::vector<std::string> next_steps(const PolicyArguments& arguments, const PolicyRequest& request,
                                    const plan::PlanResult& result);

// Lines, with a title; empty where there is nothing to type.
std::string next_steps_text(const std::vector<std::string>& steps);

// A word as a shell reads it back.
std::string quoted(const std::string& word);

}  // namespace ferry::cli
