// `ferry plan --pareto`: the curve of time against memory, at 20 budgets. plan/pareto.h computes
// it; this file has the option and the output. `ferry report` draws the same curve.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/policies.h"
#include "plan/pareto.h"

namespace CLI {
class App;
}

namespace ferry::cli {

// Adds --pareto. `asked` becomes true if the user types it.
void add_pareto_option(CLI::App& command, bool& asked);

// Computes the curve. `program` is the name as typed, for errors. Throws InputError.
plan::ParetoResult pareto_curve(const PolicyRequest& request, const std::string& program);
nlohmann::ordered_json to_json(const PolicyRequest& request, const plan::ParetoResult& result);

// Prints the table, the JSON or the CSV on stdout and errors on stderr; returns the exit code.
// Throws InputError for wrong arguments.
int plan_pareto(const PolicyArguments& arguments);

}  // namespace ferry::cli
