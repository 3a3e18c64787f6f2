// Starts programs that stand beside `ferry` and link LibTorch, which `ferry` does not: planning and
// simulating need none. Their subcommands turn this process into that program.
#pragma once

#include "cli/context.h"

namespace CLI {
class App;
}

namespace ferry::cli {

// `ferry NAME …` becomes `ferry-NAME …`, with the same arguments (--help shows that program's). If
// there is no such program it says what is missing: kResourceMissing. Throws std::system_error if
// the program exists and cannot be run.
void add_sibling(CLI::App& app, Context& context, const char* name, const char* description);

}  // namespace ferry::cli
