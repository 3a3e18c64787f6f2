// `ferry run …`: becomes ferry-run (cli/sibling.h).
#include <CLI/CLI.hpp>

#include "cli/context.h"
#include "cli/sibling.h"

namespace ferry::cli {

void add_run(CLI::App& app, Context& context) {
  add_sibling(app, context, "run", "Run a PyTorch CUDA program without a GPU (LibTorch)");
}

}  // namespace ferry::cli
