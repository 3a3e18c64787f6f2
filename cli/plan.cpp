// `ferry plan`: the table of policies for a program on a card, and the plan of the cheapest that
// fits.
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include <fmt/core.h>

#include "cli/context.h"
#include "cli/policies.h"
#include "formats/plan_file.h"
#include "sim/planner.h"

namespace ferry::cli {
namespace {

// On a terminal only, on stderr, and gone at the end.
void show_progress(std::string_view what, std::size_t done, std::size_t all) {
  fmt::print(stderr, "\r{}: {} of {} candidates{}", what, done, all, done == all ? "\r\033[K" : "");
  std::fflush(stderr);
}

int run(const PolicyArguments& arguments) {
  PolicyRequest request = understand(arguments);
  if (isatty(STDERR_FILENO) != 0) request.plan.progress = show_progress;
  const sim::PlanResult result = sim::plan(request.program, request.hardware, request.plan);
  // The last policy asked for is the one to carry out: the search, unless told otherwise. Nobody is
  // to carry out what is not safe.
  if (!arguments.output.empty() && is_safe(result.rows.back())) {
    write_plan(arguments.output,
               sim::to_plan(request.program, request.hardware, result, result.rows.back()));
  }
  return report(arguments, request, result);
}

}  // namespace

void add_plan(CLI::App& app, Context& context) {
  const auto arguments = std::make_shared<PolicyArguments>();
  CLI::App* command =
      app.add_subcommand("plan", "What each policy needs and costs; the cheapest that fits");
  command->group("Plan and simulate");
  add_policy_options(*command, *arguments);
  command->add_option("-o,--output", arguments->output, "Write the last policy's plan here")
      ->type_name("FILE");
  command->callback(
      [arguments, &context] { context.exit_code = static_cast<ExitCode>(run(*arguments)); });
}

}  // namespace ferry::cli
