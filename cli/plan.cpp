// `ferry plan`: the table of policies for a program on a card, and the plan of the cheapest that
// fits; with --stages, of a pipeline (cli/pipeline_plan.h).
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include <fmt/core.h>
#include <spdlog/spdlog.h>

#include "cli/context.h"
#include "cli/pipeline_plan.h"
#include "cli/policies.h"
#include "formats/atomic_file.h"
#include "formats/plan_file.h"
#include "sim/plan/planner.h"

namespace ferry::cli {
namespace {

// On a terminal only, on stderr, and gone at the end.
void show_progress(std::string_view what, std::size_t done, std::size_t all) {
  fmt::print(stderr, "\r{}: {} of {} candidates{}", what, done, all, done == all ? "\r\033[K" : "");
  std::fflush(stderr);
}

int run(const PolicyArguments& arguments) {
  PolicyRequest request = understand(arguments);
  require_folder_of(arguments.output);
  if (isatty(STDERR_FILENO) != 0) request.plan.progress = show_progress;
  const plan::PlanResult result = plan::plan(request.program, request.hardware, request.plan);
  // The last policy asked for is the one to carry out: the search, unless told otherwise. Nobody is
  // to carry out what is not safe.
  const plan::PolicyRow& last = result.rows.back();
  if (!arguments.output.empty()) {
    if (is_safe(last)) {
      write_plan(arguments.output, plan::to_plan(request.program, request.hardware, result, last));
      if (!last.fits) spdlog::warn("{}: this plan does not fit", arguments.output.string());
    } else {
      spdlog::error("{}: not written, for the plan is not safe", arguments.output.string());
    }
  }
  return report(arguments, request, result);
}

}  // namespace

void add_plan(CLI::App& app, Context& context) {
  const auto arguments = std::make_shared<PolicyArguments>();
  const auto pipeline = std::make_shared<PipelineArguments>();
  CLI::App* command =
      app.add_subcommand("plan", "What each policy needs and costs; the cheapest that fits");
  command->group("Plan and simulate");
  add_policy_options(*command, *arguments);
  command->add_option("-o,--output", arguments->output, "Write the last policy's plan here")
      ->type_name("FILE");
  add_pipeline_options(*command, *pipeline);
  command->get_option("--policy")
      ->description(list_of_policies() + "; with --stages: " + list_of_pipeline_policies());
  command->callback([arguments, pipeline, &context] {
    const bool several = pipeline->stages > 0;
    context.exit_code =
        static_cast<ExitCode>(several ? plan_pipeline(*arguments, *pipeline) : run(*arguments));
  });
}

}  // namespace ferry::cli
