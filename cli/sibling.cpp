#include "cli/sibling.h"

#include <unistd.h>

#include <spdlog/spdlog.h>
#include <CLI/CLI.hpp>
#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace ferry::cli {
namespace {

// Returns only if there is no such program.
ExitCode run(const std::string& name, std::vector<std::string> arguments) {
  std::string program_name = "ferry-" + name;
  const std::filesystem::path program =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / program_name;
  std::vector<char*> argv = {program_name.data()};
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  ::execv(program.c_str(), argv.data());
  if (errno != ENOENT) {
    throw std::system_error(errno, std::generic_category(), "cannot run " + program.string());
  }
  spdlog::error("{} " FERRY_WITHOUT_SIBLINGS, name);  // why it is not there, and what to do
  return kResourceMissing;
}

}  // namespace

void add_sibling(CLI::App& app, Context& context, const char* name, const char* description) {
  CLI::App* command = app.add_subcommand(name, description);
  command->group("Train");
  command->set_help_flag();
  command->prefix_command();
  command->callback(
      [command, &context, name] { context.exit_code = run(name, command->remaining()); });
}

}  // namespace ferry::cli
