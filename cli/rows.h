// Prints the rows of `ferry plan` and `ferry simulate` as a table, JSON or CSV, and reports what
// went wrong in them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/policies.h"
#include "plan/planner.h"

namespace ferry::cli {

// Returns "times: 812 of 830 ops measured (mine.times.jsonl)\n"; empty without --times.
std::string times_line(const PolicyRequest& request);
// Returns the same as JSON; null without --times.
nlohmann::ordered_json times_json(const PolicyRequest& request);
std::string to_table(const PolicyRequest& request, const plan::PlanResult& result);
nlohmann::ordered_json to_json(const PolicyRequest& request, const plan::PlanResult& result);

// Prints the table, JSON or CSV on stdout and errors on stderr; returns the exit code. `written` is
// the row whose plan is in the output file; null if no plan was written.
int report(const PolicyArguments& arguments, const PolicyRequest& request,
           const plan::PlanResult& result, const plan::PolicyRow* written = nullptr);
// Prints what went wrong in rows on stderr; returns the exit code, which is `code` if nothing did.
int told_faults(const PolicyRequest& request, const std::vector<plan::PolicyRow>& rows, int code);

}  // namespace ferry::cli
