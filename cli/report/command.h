// Declares `ferry report` for the program `ferry` (cli/ferry/main.cpp). report.cpp has the command.
#pragma once

#include "cli/console/context.h"

namespace CLI {
class App;
}

namespace ferry::cli {

void add_report(CLI::App& app, Context& context);

}  // namespace ferry::cli
