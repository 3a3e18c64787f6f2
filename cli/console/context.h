// The context that subcommands share. A subcommand is one file with one function, which adds it to
// the program and sets its callback; the callback prints the result on stdout, the rest on stderr,
// and leaves the exit code in the context. It throws InputError for bad input.
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

// What an option's value may be, for a shell to complete.
struct Values {
  std::vector<std::string> names;
  bool or_file = false;  // a path will do as well
};

struct Context {
  ExitCode exit_code = kOk;
  std::vector<CLI::Option*> further;  // what --help does not list (first_options.h)
  std::vector<std::string> typed;     // the words of the command line, after the program's
  // Of options whose values have names. Those of type FILE need no entry.
  std::map<const CLI::Option*, std::function<Values()>> values;
};

}  // namespace ferry::cli
