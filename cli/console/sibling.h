// Starts the programs beside `ferry` that link LibTorch or RapidCheck, which planning and
// simulating do not need. A subcommand of this kind replaces the process by that program (exec).
#pragma once

#include "cli/console/context.h"

namespace CLI {
class App;
}

namespace ferry::cli {

struct Sibling {
  const char* name;         // `ferry NAME …` becomes `ferry-NAME …`
  const char* description;  // in the help
  const char* group;        // the heading in the help; empty: the default one
  const char* without;      // the message if the program is missing is "NAME " and this text
};

// The other program gets the arguments unchanged (so --help shows its help). If the program is
// missing, `ferry` prints `without` and exits with kResourceMissing. Throws std::system_error if
// the program exists but cannot be started.
void add_sibling(CLI::App& app, Context& context, const Sibling& sibling);

}  // namespace ferry::cli
