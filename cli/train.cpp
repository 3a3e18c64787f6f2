// `ferry train …`: becomes ferry-train (cli/sibling.h).
#include <CLI/CLI.hpp>

#include "cli/context.h"
#include "cli/sibling.h"

namespace ferry::cli {

void add_train(CLI::App& app, Context& context) {
  add_sibling(app, context, "train", "Train a network with offload (LibTorch)");
}

}  // namespace ferry::cli
