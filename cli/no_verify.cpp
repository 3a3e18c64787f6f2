// `ferry verify …` in a build without RapidCheck, which shrinks programs: says what is missing.
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>

#include "cli/context.h"

namespace ferry::cli {

void add_no_verify(CLI::App& app, Context& context) {
  CLI::App* command =
      app.add_subcommand("verify", "Not in this build: Ferry was built without RapidCheck");
  command->set_help_flag();
  command->prefix_command();
  command->callback([&context] {
    spdlog::error(
        "verify needs RapidCheck, and this Ferry was built without it: install librapidcheck-dev, "
        "and build again");
    context.exit_code = kResourceMissing;
  });
}

}  // namespace ferry::cli
