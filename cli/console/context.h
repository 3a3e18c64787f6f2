// The context that subcommands share. A subcommand is one file with one function, which adds the
// subcommand to the program and sets its callback. The callback prints the result on stdout and
// messages on stderr, and stores the exit code in the context. It throws InputError for bad input.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cli/console/exit_codes.h"

namespace CLI {
class Option;
}

namespace ferry::cli {

// The values that an option can have, for completion in a shell.
struct Values {
  std::vector<std::string> names;
  bool or_file = false;  // a path is allowed too
};

struct Context {
  ExitCode exit_code = kOk;
  std::vector<CLI::Option*> further;  // options that only --help-all lists (first_options.h)
  std::vector<std::string> typed;     // the words of the command line after the program's name
  // The values of options that take names. Options of type FILE need no entry.
  std::map<const CLI::Option*, std::function<Values()>> values;
};

}  // namespace ferry::cli
