// Prints the rows of `ferry plan` and `ferry simulate` as a table, JSON or CSV, and reports what
// went wrong in them.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cli/policies.h"
#include "plan/planner.h"

namespace ferry::cli {

// Returns "times: 812 of 830 ops measured (mine.times.jsonl)\n"; empty without --times.
std::string times_line(const PolicyRequest& request);
// Returns the same as JSON; null without --times.
nlohmann::ordered_json times_json(const PolicyRequest& request);
// Returns "Captured: model GPT-2 124M, batch 8, …\n", so that the reader knows what was planned.
// Empty if the program's file does not say.
std::string captured_line(const Program& program);
// Returns a figure that the capture says of itself, such as "tokens"; 0 if it does not.
std::int64_t said_number(const Program& program, std::string_view name);
std::string to_table(const PolicyRequest& request, const plan::PlanResult& result);
nlohmann::ordered_json to_json(const PolicyRequest& request, const plan::PlanResult& result);

// Whether an answer (cli/answer.h) and the next steps follow the table.
enum class Answers : std::uint8_t { kNo, kYes };

// Prints the table, JSON or CSV on stdout and errors on stderr; returns the exit code. `written` is
// the row whose plan is in the output file; null if no plan was written.
int report(const PolicyArguments& arguments, const PolicyRequest& request,
           const plan::PlanResult& result, Answers answers,
           const plan::PolicyRow* written = nullptr);
// Prints what went wrong in rows on stderr; returns the exit code, which is `code` if nothing did.
int told_faults(const PolicyRequest& request, const std::vector<plan::PolicyRow>& rows, int code);

}  // namespace ferry::cli
