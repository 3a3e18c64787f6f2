// Programs that stand beside `ferry` and link LibTorch, which it does not: what plans and simulates
// needs none. A subcommand of theirs is this process turned into that program.
#pragma once

#include "cli/context.h"

namespace CLI {
class App;
}

namespace ferry::cli {

// `ferry NAME …` becomes `ferry-NAME …`, with the same arguments (--help is that program's as
// well). Where there is no such program it says what is missing: kResourceMissing. Throws
// std::system_error where it is there and cannot be run.
void add_sibling(CLI::App& app, Context& context, const char* name, const char* description);

}  // namespace ferry::cli
