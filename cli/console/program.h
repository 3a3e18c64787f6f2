// The common part of the command-line programs. A program parses its arguments, runs one
// subcommand, and turns an exception into an exit code and one line on stderr.
//
// `ferry` has all subcommands. Some of them start a separate program beside it (sibling.h). That
// program also runs its one subcommand here, so that its messages, its help and its exit codes are
// the same as if `ferry` had run it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cli/console/context.h"
#include "formats/old_names.h"

namespace CLI {
class App;
}

namespace ferry::cli {

// Adds a subcommand to the program, and sets its callback.
using AddSubcommand = void (*)(CLI::App&, Context&);

struct Program {
  const char* version;  // of Ferry
  std::span<const AddSubcommand> subcommands;
  const char* footer = "";  // the end of the help, after the commands
  // Renamed options and values, and the commands that still accept their old names.
  std::span<const OldName> old_names = {};
  std::span<const OldValue> old_values = {};
  std::span<const std::string_view> with_old_names = {};
};

// Returns the exit code of the process. Does not throw.
int run_program(int argc, char** argv, const Program& program);

// Does the same for the program `ferry-NAME`, which gets the arguments after `ferry NAME`. It also
// accepts `--complete OPTION`, which prints the values of the option, one on each line, for a shell
// that completes `ferry NAME OPTION`.
int run_sibling(int argc, char** argv, const char* name, const Program& program);

}  // namespace ferry::cli
