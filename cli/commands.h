// The subcommands of `ferry` in this room. Each is defined in the file of its name; siblings.cpp
// defines those that start another program. `ferry report` and `ferry sweep` have their own rooms.
#pragma once

#include "cli/console/context.h"

namespace CLI {
class App;
}

namespace ferry::cli {

void add_hardware(CLI::App& app, Context& context);
void add_programs(CLI::App& app, Context& context);
void add_plan(CLI::App& app, Context& context);
void add_simulate(CLI::App& app, Context& context);
void add_replay(CLI::App& app, Context& context);
void add_verify(CLI::App& app, Context& context);
void add_check(CLI::App& app, Context& context);
void add_train(CLI::App& app, Context& context);
void add_run(CLI::App& app, Context& context);
void add_calibrate(CLI::App& app, Context& context);
void add_completion(CLI::App& app, Context& context);

}  // namespace ferry::cli
