// Declares `ferry explain` for the program `ferry` (cli/ferry/main.cpp). explain.cpp has the
// command.
#pragma once

#include "cli/console/context.h"

namespace CLI {
class App;
}

namespace ferry::cli {

void add_explain(CLI::App& app, Context& context);

}  // namespace ferry::cli
