// `ferry plan`: prints the table of policies for a program on a card. With --output it also writes
// the plan of the best row (plan::best_row): the fastest that fits and saves memory, or else the
// one with the least memory. If there is one row only, it is the best one. If the plan does not
// fit, a message says so.
//
// No plan is written if no row has a plan that ran safely, or if the search was stopped. Only
// Ferry's own scheduler can run a plan, so --output throws InputError if every policy asked for is
// another scheduler's.
//
// --stages plans a pipeline (cli/pipeline_plan.h), --pareto the curve of time against memory
// (cli/pareto_plan.h). Several cards are one table (cli/cards_plan.h).
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>

#include "cli/cards_plan.h"
#include "cli/commands.h"
#include "cli/console/first_options.h"
#include "cli/console/messages.h"
#include "cli/console/progress.h"
#include "cli/console/stop.h"
#include "cli/pareto_plan.h"
#include "cli/peak_owners.h"
#include "cli/pipeline_plan.h"
#include "cli/policies.h"
#include "cli/rows.h"
#include "formats/atomic_file.h"
#include "formats/error.h"
#include "formats/plan_file.h"
#include "plan/planner.h"

namespace ferry::cli {
namespace {

void refuse_what_is_no_plan(const PolicyArguments& arguments, const PolicyRequest& request) {
  const std::vector<Policy>& asked = request.plan.policies;
  const bool planned = std::any_of(asked.begin(), asked.end(),
                                   [](Policy each) { return !entry(each).other_scheduler; });
  if (arguments.output.empty() || planned) return;
  throw InputError(
      "--output", 0,
      std::string(name(asked.front())) +
          " is another library's scheduler, and only Ferry's own can run a plan: expected another "
          "--policy");
}

// Warns if the model calls torch.utils.checkpoint. A plan cannot control these calls, and without
// them the model saves other tensors.
void warn_of_foreign_checkpoints(const PolicyArguments& arguments, const Program& program) {
  const auto is_foreign = [](const auto& line) {
    return line.first == "checkpoints" && line.second == "torch.utils.checkpoint";
  };
  if (std::none_of(program.about.begin(), program.about.end(), is_foreign)) return;
  tell(
      "note: {} plans the model's checkpoints, so these must call torch_ferry.checkpoint. "
      "torch_ferry.transformers.OffloadCallback does this for you; in your own training loop, call "
      "torch_ferry.transformers.use_checkpoint(model) first",
      arguments.output.string());
}

int print_plan(const PolicyArguments& arguments) {
  PolicyRequest request = understand(arguments);
  request.plan.expandable_too = !arguments.no_expandable;
  require_folder_of(arguments.output);
  refuse_what_is_no_plan(arguments, request);
  PeakRecorders peaks(request);
  ProgressLine progress;
  request.plan.progress = [&](std::string_view policy, std::size_t done, std::size_t all) {
    progress.show(done, all, policy);
  };
  request.plan.stop = is_stopped;
  const plan::PlanResult result = plan::plan(request.program, request.hardware, request.plan);
  request.plan.recorder = nullptr;  // the answer may plan more
  progress.clear();
  // An unsafe plan is not written, nor one of a search that was stopped: it may not be the best.
  const bool asked = !arguments.output.empty() && !result.stopped;
  const plan::PolicyRow* best = asked ? plan::best_row(result) : nullptr;
  if (best) {
    write_plan(arguments.output, plan::to_plan(request.program, request.hardware, result, *best));
    if (!best->fits) {
      tell("{}: written, but its plan does not fit", arguments.output.string());
    }
    warn_of_foreign_checkpoints(arguments, request.program);
  } else if (asked) {
    tell("{}: not written: no row has a plan that ran safely", arguments.output.string());
  }
  return report(arguments, request, result, Answers::kYes, best);
}

}  // namespace

void add_plan(CLI::App& app, Context& context) {
  const auto arguments = std::make_shared<PolicyArguments>();
  const auto pipeline = std::make_shared<PipelineArguments>();
  const auto pareto = std::make_shared<bool>(false);
  const auto dollars = std::make_shared<Dollars>();
  CLI::App* command =
      app.add_subcommand("plan", "Compare policies on a card, and find the fastest that fits");
  command->group("Plan and simulate");
  command->footer(R"(
Examples:
  ferry plan llama3-8b --card h100   compare policies, each simulated and checked
  ferry plan hf:Qwen/Qwen2.5-7B --card h100 --tokens 4096 --lora 16   a model by its name
  ferry plan gpt2 --card a10,l4,rtx4090 --dollars a10=0.75,l4=0.8   one table for several cards
  ferry plan gpt2 --card rtx4090 --budget 7GiB -o gpt2.plan   write the best plan to a file
  ferry plan gpt2 --card a100 --policy keep,offload --json   compare two policies, as JSON
  ferry plan gpt2 --card rtx4090 --pareto   the fastest plan for each of 20 budgets
  ferry plan gpt2 --card a100 --stages 4 --microbatches 8   a pipeline over four GPUs
  ferry plan gpt.jsonl --card a100 --stages 2 --microbatches 4 -o pipe.plan   write its plan
  ferry plan gpt.jsonl --card mine.toml --times mine.times.jsonl   use measured times)");
  add_policy_options(*command, *arguments, context);
  command
      ->add_option("-o,--output", arguments->output,
                   "Write the plan of the best row that fits to this file")
      ->type_name("FILE");
  command->add_flag("--no-expandable", arguments->no_expandable,
                    "Plan `best` without expandable segments only; by default it is also planned "
                    "with them if it is far from the bound");
  add_pipeline_options(*command, *pipeline, context);
  add_pareto_option(*command, *pareto);
  add_dollars_option(*command, *dollars);
  command->get_option("--policy")
      ->description(policy_choices() + "; with --stages: " + list_of_pipeline_policies());
  list_first(*command, context,
             {"--card", "--budget", "--policy", "--tokens", "--batch", "--lora", "--optimizer",
              "--microbatches", "--no-modules", "--json", "--output", "--pareto", "--stages"});
  command->callback([arguments, pipeline, pareto, dollars, &context] {
    listen_for_stop();
    arguments->typed = context.typed;
    const bool one_card = !has_several_cards(*arguments) && !dollars->has_value();
    if (!one_card && (pipeline->stages > 0 || *pareto)) {
      throw InputError("--card", 0,
                       "expected one card, and no --dollars, with --stages and with --pareto");
    }
    context.exit_code =
        static_cast<ExitCode>(pipeline->stages > 0 ? plan_pipeline(*arguments, *pipeline)
                              : *pareto            ? plan_pareto(*arguments)
                              : one_card           ? print_plan(*arguments)
                                                   : plan_cards(*arguments, *dollars));
  });
}

}  // namespace ferry::cli
