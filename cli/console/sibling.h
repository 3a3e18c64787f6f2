// Starts programs that stand beside `ferry` and link what `ferry` does not: LibTorch, or
// RapidCheck. Planning and simulating need neither. Their subcommands turn this process into that
// program.
#pragma once

#include "cli/console/context.h"

namespace CLI {
class App;
}

namespace ferry::cli {

struct Sibling {
  const char* name;         // `ferry NAME …` becomes `ferry-NAME …`
  const char* description;  // in the help
  const char* group;        // likewise; empty: none of its own
  const char* without;      // "NAME " and this is what `ferry` says where there is no such program
};

// The other program gets the arguments as they are (so --help shows its help). If there is no such
// program, `ferry` says what is missing: kResourceMissing. Throws std::system_error if the program
// exists and cannot be run.
void add_sibling(CLI::App& app, Context& context, const Sibling& sibling);

}  // namespace ferry::cli
