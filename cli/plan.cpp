// `ferry plan`: the table of policies for a program on a card, and the plan of the fastest that
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
#include "formats/error.h"
#include "formats/plan_file.h"
#include "sim/plan/planner.h"

namespace ferry::cli {
namespace {

// On a terminal only, on stderr, and gone at the end.
void show_progress(std::string_view what, std::size_t done, std::size_t all) {
  fmt::print(stderr, "\r{}: {} of {} candidates{}", what, done, all, done == all ? "\r\033[K" : "");
  std::fflush(stderr);
}

void refuse_what_is_no_plan(const PolicyArguments& arguments, const PolicyRequest& request) {
  if (arguments.output.empty() || request.plan.policies != std::vector<std::string>{"offload-all"})
    return;
  throw InputError("--output", 0,
                   "offload-all is TRL's scheduler, and a plan is one that Ferry's carries out: "
                   "expected another --policy");
}

int run(const PolicyArguments& arguments) {
  PolicyRequest request = understand(arguments);
  require_folder_of(arguments.output);
  refuse_what_is_no_plan(arguments, request);
  if (isatty(STDERR_FILENO) != 0) request.plan.progress = show_progress;
  const plan::PlanResult result = plan::plan(request.program, request.hardware, request.plan);
  // Nobody is to carry out what is not safe.
  const plan::PolicyRow* best = arguments.output.empty() ? nullptr : plan::best_row(result);
  if (best) {
    write_plan(arguments.output, plan::to_plan(request.program, request.hardware, result, *best));
    if (!best->fits) spdlog::warn("{}: this plan does not fit", arguments.output.string());
  } else if (!arguments.output.empty()) {
    spdlog::error("{}: not written, for the plan is not safe", arguments.output.string());
  }
  return report(arguments, request, result, best);
}

}  // namespace

void add_plan(CLI::App& app, Context& context) {
  const auto arguments = std::make_shared<PolicyArguments>();
  const auto pipeline = std::make_shared<PipelineArguments>();
  CLI::App* command =
      app.add_subcommand("plan", "What each policy needs and costs; the cheapest that fits");
  command->group("Plan and simulate");
  add_policy_options(*command, *arguments);
  command
      ->add_option("-o,--output", arguments->output,
                   "Write the plan of the best row that fits here")
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
