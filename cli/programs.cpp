// `ferry programs [--json | --csv]`: lists the shipped programs, each one training step.
#include "scenarios/programs.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/console/output.h"
#include "cli/console/shipped.h"
#include "formats/printable.h"

namespace ferry::cli {
namespace {

struct ProgramsOptions {
  bool json = false;
  bool csv = false;
};

void run(const ProgramsOptions& options) {
  const std::vector<ShippedProgram> all = list_programs(warn_of_unreadable);
  if (!options.json && !options.csv) {
    for (const ShippedProgram& each : all) {
      std::printf("%-20s %s\n", printable(each.name).c_str(), printable(each.description).c_str());
    }
    return;
  }
  nlohmann::ordered_json json = {
      {"ferry", "programs"}, {"schema", 1}, {"programs", nlohmann::ordered_json::array()}};
  for (const ShippedProgram& each : all) {
    json["programs"].push_back(
        {{"name", each.name}, {"path", each.path.string()}, {"description", each.description}});
  }
  options.csv ? print_csv(json["programs"]) : print_json(json);
}

}  // namespace

void add_programs(CLI::App& app, Context&) {
  const auto options = std::make_shared<ProgramsOptions>();
  CLI::App* command = app.add_subcommand("programs", "List the shipped training steps");
  command->group("Shipped files");
  command->footer(R"(
Examples:
  ferry programs          list the programs to plan and simulate
  ferry programs --json   the same as JSON, with paths)");
  command->add_flag("--json", options->json, "Print JSON, with paths");
  command->add_flag("--csv", options->csv, "Print the same as comma-separated values")
      ->excludes("--json");
  command->callback([options] { run(*options); });
}

}  // namespace ferry::cli
