// The context that subcommands share, and their list. A subcommand is one file with one function,
// which adds it to the program and sets its callback; the callback prints the result on stdout, the
// rest on stderr, and leaves the exit code in the context. It throws InputError for bad input.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cli/exit_codes.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace ferry::cli {

// What an option's value may be, for a shell to complete.
struct Values {
  std::vector<std::string> names;
  bool or_file = false;  // a path will do as well
};

struct Context {
  ExitCode exit_code = kOk;
  // Of options whose values have names. Those of type FILE need no entry.
  std::map<const CLI::Option*, std::function<Values()>> values;
};

void add_hardware(CLI::App& app, Context& context);
void add_programs(CLI::App& app, Context& context);
void add_plan(CLI::App& app, Context& context);
void add_report(CLI::App& app, Context& context);
void add_sweep(CLI::App& app, Context& context);
void add_simulate(CLI::App& app, Context& context);
void add_replay(CLI::App& app, Context& context);
void add_verify(CLI::App& app, Context& context);     // where Ferry was built with RapidCheck
void add_no_verify(CLI::App& app, Context& context);  // stands in its place otherwise
void add_check(CLI::App& app, Context& context);
void add_train(CLI::App& app, Context& context);
void add_run(CLI::App& app, Context& context);
void add_calibrate(CLI::App& app, Context& context);
void add_completion(CLI::App& app, Context& context);

}  // namespace ferry::cli
