// What the programs of the command line have in common: one reads its arguments, runs one
// subcommand, and turns what was thrown into an exit code and one line on stderr.
//
// `ferry` has all subcommands. Some of them become a program of their own that stands beside it
// (sibling.h); such a program runs its one subcommand here as well, so that its messages, its help
// and its exit codes are the same as if `ferry` had run it.
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
  const char* footer = "";  // of the help, after the commands
  // Of options that were renamed, and the commands that have these.
  std::span<const OldName> old_names = {};
  std::span<const std::string_view> with_old_names = {};
};

// Returns the exit code of the process. Nothing is thrown.
int run_program(int argc, char** argv, const Program& program);

// The same for `ferry-NAME`, whose arguments are those behind `ferry NAME`. Beside what the
// subcommand takes it knows `--complete OPTION`: it prints the names that this option may have, one
// a line, for the shell that completes `ferry NAME OPTION`.
int run_sibling(int argc, char** argv, const char* name, const Program& program);

}  // namespace ferry::cli
