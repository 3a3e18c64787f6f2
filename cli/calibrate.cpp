// `ferry calibrate …`: becomes ferry-calibrate (cli/sibling.h).
#include <CLI/CLI.hpp>

#include "cli/context.h"
#include "cli/sibling.h"

namespace ferry::cli {

void add_calibrate(CLI::App& app, Context& context) {
  add_sibling(app, context, "calibrate",
              "Measure this machine: a hardware file, and kernel times (LibTorch)");
}

}  // namespace ferry::cli
