// `ferry plan --pareto`: the curve of time against memory.
#pragma once

#include "cli/policies.h"

namespace CLI {
class App;
}

namespace ferry::cli {

// Returns where it is stored whether the curve was asked for.
void add_pareto_option(CLI::App& command, bool& asked);

// Prints the table, the JSON or the CSV on stdout and errors on stderr; returns the exit code.
// Throws InputError for wrong arguments.
int plan_pareto(const PolicyArguments& arguments);

}  // namespace ferry::cli
