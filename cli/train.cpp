// `ferry train …`: becomes ferry-train, which stands beside this program and takes the same
// arguments. LibTorch is linked there and not here: what plans and simulates needs none.
#include <unistd.h>

#include <spdlog/spdlog.h>
#include <CLI/CLI.hpp>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "cli/context.h"

namespace ferry::cli {
namespace {

// Returns only where there is no such program.
ExitCode run(std::vector<std::string> arguments) {
  const std::filesystem::path program =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "ferry-train";
  std::string name = "ferry-train";
  std::vector<char*> argv = {name.data()};
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  ::execv(program.c_str(), argv.data());
  if (errno != ENOENT) {
    throw std::system_error(errno, std::generic_category(), "cannot run " + program.string());
  }
  spdlog::error(
      "train needs LibTorch, and this Ferry was built without it: run ./dev torch, and build "
      "again");
  return kResourceMissing;
}

}  // namespace

void add_train(CLI::App& app, Context& context) {
  CLI::App* command =
      app.add_subcommand("train", "Train a GPT or a ResNet with offload (LibTorch)");
  command->group("Train");
  command->set_help_flag();  // --help is ferry-train's as well
  command->prefix_command();
  command->callback([command, &context] { context.exit_code = run(command->remaining()); });
}

}  // namespace ferry::cli
