// The next steps after `ferry plan`: the command that writes the plan file, and the lines of Python
// that train with it.
#pragma once

#include <string>
#include <vector>

#include "cli/policies.h"
#include "plan/planner.h"

namespace ferry::cli {

// Returns the command that writes the plan, if no plan was written, and the lines of Python that
// run it. Empty if nothing fits, the search was stopped, or the answer keeps everything.
std::vector<std::string> next_steps(const PolicyArguments& arguments, const PolicyRequest& request,
                                    const plan::PlanResult& result);

// Returns the steps as lines with a title; empty if there are none.
std::string next_steps_text(const std::vector<std::string>& steps);

// Quotes a word for a shell, if that is necessary.
std::string quoted(const std::string& word);

}  // namespace ferry::cli
