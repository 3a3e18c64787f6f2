#include "cli/console/sibling.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "cli/console/messages.h"

namespace ferry::cli {
namespace {

// Becomes the program. Returns only if there is no such program.
ExitCode run(const Sibling& sibling, std::vector<std::string> arguments) {
  std::string program_name = std::string("ferry-") + sibling.name;
  const std::filesystem::path program =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / program_name;
  std::vector<char*> argv = {program_name.data()};
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  ::execv(program.c_str(), argv.data());
  if (errno != ENOENT) {
    throw std::system_error(errno, std::generic_category(), "cannot run " + program.string());
  }
  tell("{} {}", sibling.name, sibling.without);
  return kResourceMissing;
}

}  // namespace

void add_sibling(CLI::App& app, Context& context, const Sibling& sibling) {
  CLI::App* command = app.add_subcommand(sibling.name, sibling.description);
  if (*sibling.group != '\0') command->group(sibling.group);
  command->set_help_flag();
  command->prefix_command();
  command->callback(
      [command, &context, sibling] { context.exit_code = run(sibling, command->remaining()); });
}

}  // namespace ferry::cli
