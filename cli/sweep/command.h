// Declares `ferry sweep` for the program `ferry` (cli/ferry/main.cpp). sweep.cpp has the command.
#pragma once

#include "cli/console/context.h"

namespace CLI {
class App;
}

namespace ferry::cli {

void add_sweep(CLI::App& app, Context& context);

}  // namespace ferry::cli
