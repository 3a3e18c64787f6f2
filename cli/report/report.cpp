// `ferry report`: writes one HTML page with the results of `ferry plan` and the curve of time
// against memory. cli/page has the page itself.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/answer.h"
#include "cli/console/first_options.h"
#include "cli/console/output.h"
#include "cli/console/progress.h"
#include "cli/console/stop.h"
#include "cli/page/page.h"
#include "cli/page/places.h"
#include "cli/pareto_plan.h"
#include "cli/peak_owners.h"
#include "cli/plan_run.h"
#include "cli/policies.h"
#include "cli/report/command.h"
#include "cli/report/run_data.h"
#include "cli/rows.h"
#include "formats/atomic_file.h"
#include "plan/pareto.h"
#include "plan/planner.h"
#include "scenarios/units.h"

namespace ferry::cli {
namespace {

using Json = nlohmann::ordered_json;

struct ReportArguments {
  PolicyArguments policies;
  bool no_curve = false;
};

struct Found {
  plan::PlanResult result;
  plan::ParetoResult curve;
};

Found find(const ReportArguments& arguments, PolicyRequest& request) {
  Found found;
  ProgressLine progress;
  request.plan.progress = [&](std::string_view policy, std::size_t done, std::size_t all) {
    progress.show(done, all, policy);
  };
  request.plan.stop = is_stopped;
  found.result = arguments.policies.plan.empty()
                     ? plan::plan(request.program, request.hardware, request.plan)
                     : run_plan(arguments.policies.plan, request);
  request.plan.recorder = nullptr;
  const bool fails = found.result.keep_judged_bytes == kUnlimited;
  if (!arguments.no_curve && !found.result.stopped && !fails) {
    request.plan.progress = [&](std::string_view, std::size_t done, std::size_t all) {
      progress.show(done, all, "the curve of time against memory");
    };
    found.curve = pareto_curve(request, arguments.policies.subject);
  }
  progress.clear();
  return found;
}

// The data of the page. `plan` is what `ferry plan --json` prints, and `curve` is what
// `ferry plan --pareto --json` prints.
Json data_of(const ReportArguments& arguments, const PolicyRequest& request, const Found& found) {
  Json data = {{"schema", 1}, {"plan", to_json(request, found.result)}, {"curve", nullptr}};
  if (!arguments.no_curve) data["curve"] = to_json(request, found.curve);
  const Hardware& card = request.hardware;
  const plan::PolicyRow* best = plan::best_row(found.result);
  data["card"] = {{"description", card.description},
                  {"capacity_bytes", card.capacity_bytes},
                  {"usable_bytes", card.usable_bytes()}};
  data["included"] = included(request.training);
  data["step"] = step_of(request.training, request.microbatches);
  data["best"] = best ? Json(best->policy) : Json();
  const Places places(request.program);
  Texts texts;
  data["runs"] = Json::array();
  for (std::size_t i = 0; i < found.result.rows.size(); ++i) {
    data["runs"].push_back(run_data(found.result.rows[i], request.peaks->record(i), places, texts));
  }
  data["texts"] = texts.all();
  return data;
}

// Returns the words of the `ferry plan` that corresponds to this `ferry report`.
std::vector<std::string> words_of_plan(const std::vector<std::string>& typed) {
  std::vector<std::string> words = {"plan"};
  for (std::size_t i = 1; i < typed.size(); ++i) {
    const std::string& word = typed[i];
    if (word == "-o" || word == "--output") {
      ++i;  // its file
    } else if (word != "--no-curve" && !word.starts_with("-o") && !word.starts_with("--output=")) {
      words.push_back(word);
    }
  }
  return words;
}

int run(ReportArguments arguments) {
  const PolicyArguments& typed = arguments.policies;
  if (!typed.plan.empty()) arguments.no_curve = true;
  PolicyRequest request = understand(typed);
  PeakRecorders peaks(request);
  require_folder_of(typed.output);
  const Found found = find(arguments, request);
  if (found.result.stopped || found.curve.stopped) {
    return told_stopped(fmt::format("{} of {} policies; no page is written",
                                    found.result.rows.size(), request.plan.policies.size()));
  }
  const std::string title =
      fmt::format("{} on {}, in {}", request.program_name, request.hardware.name,
                  format_bytes(request.plan.budget_bytes));
  const std::string says = answer(typed, request, found.result);
  Json data = data_of(arguments, request, found);
  data["plan"]["answer"] = says;
  const std::string text = page(title, says, data);
  write_file(typed.output, text);
  PolicyArguments printed = typed;
  printed.output = typed.plan;  // the next steps name a plan's file, and `typed.output` is a page
  printed.typed = words_of_plan(typed.typed);
  const int code = report(printed, request, found.result, Answers::kYes);
  if (!typed.json && !typed.csv) {
    print_text(fmt::format("written: {} ({}); open it in a browser\n", typed.output.string(),
                           format_bytes(static_cast<std::int64_t>(text.size()))));
  }
  return code;
}

}  // namespace

void add_report(CLI::App& app, Context& context) {
  const auto arguments = std::make_shared<ReportArguments>();
  CLI::App* command =
      app.add_subcommand("report", "Write the results of `ferry plan` as an HTML page");
  command->group("Plan and simulate");
  command->footer(R"(
The page is one file that needs no network. It shows memory over time by kind, what the peak
consists of, what each stream did and what it waited for, and time against memory.

Examples:
  ferry report llama3-8b --card h100 -o llama.html   the policies of `ferry plan`
  ferry report unet --card rtx4090 --budget 1.5GiB --policy keep,best -o unet.html
  ferry report gpt2 --card a100 --no-curve -o gpt2.html   without the curve, which takes long
  ferry report gpt2 --card rtx4090 --plan gpt2.plan -o plan.html   one plan, from its file)");
  add_policy_options(*command, arguments->policies, context);
  command->add_option("-o,--output", arguments->policies.output, "Write the page to this file")
      ->type_name("FILE")
      ->required();
  command->add_flag("--no-curve", arguments->no_curve,
                    "Leave out the curve of time against memory, which plans 20 budgets");
  command
      ->add_option("--plan", arguments->policies.plan,
                   "Show this plan, which `ferry plan` wrote, instead of policies; without a curve")
      ->type_name("FILE")
      ->excludes("--policy");
  list_first(*command, context,
             {"--card", "--budget", "--policy", "--plan", "--output", "--no-curve", "--optimizer",
              "--optimizer-implementation", "--microbatches", "--alloc-conf", "--times",
              "--no-modules", "--unchecked"});
  command->callback([arguments, &context] {
    listen_for_stop();
    arguments->policies.typed = context.typed;
    context.exit_code = static_cast<ExitCode>(run(*arguments));
  });
}

}  // namespace ferry::cli
