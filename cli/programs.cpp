// `ferry programs [--json]`: lists the training steps that ship.
#include "scenarios/programs.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/context.h"
#include "cli/output.h"
#include "cli/shipped.h"
#include "formats/printable.h"

namespace ferry::cli {
namespace {

void run(bool as_json) {
  const std::vector<ShippedProgram> all = list_programs(warn_of_unreadable);
  if (!as_json) {
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
  print_json(json);
}

}  // namespace

void add_programs(CLI::App& app, Context&) {
  const auto as_json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("programs", "List the training steps that ship");
  command->group("What ships");
  command->footer(R"(
Examples:
  ferry programs          what ships to plan and simulate
  ferry programs --json   with paths, for machines)");
  command->add_flag("--json", *as_json, "For machines; with paths");
  command->callback([as_json] { run(*as_json); });
}

}  // namespace ferry::cli
