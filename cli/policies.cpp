#include "cli/policies.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <stdexcept>
#include <string_view>

#include "cli/console/choices.h"
#include "cli/console/context.h"
#include "cli/console/shipped.h"
#include "formats/error.h"
#include "formats/microbatches.h"
#include "formats/printable.h"
#include "formats/program_file.h"
#include "plan/policies.h"
#include "plan/span_model.h"
#include "scenarios/l2.h"
#include "scenarios/programs.h"
#include "scenarios/scenario.h"
#include "scenarios/units.h"

namespace ferry::cli {

namespace {

const std::vector<std::string> kOrderNames = {"fbfb", "ffbb", "1f1b"};

MicrobatchOrder order_of(const std::vector<std::string>& schedules) {
  constexpr MicrobatchOrder kOrders[] = {MicrobatchOrder::kFbfb, MicrobatchOrder::kFfbb,
                                         MicrobatchOrder::kOneForwardOneBackward};
  if (schedules.empty()) return kOrders[0];
  if (schedules.size() > 1) {
    throw InputError("--schedule", 0, "expected one; only `ferry plan --stages` takes several");
  }
  return kOrders[choice("--schedule", schedules.front(), kOrderNames)];
}

std::vector<std::string> names_or_all() {
  std::vector<std::string> names = policy_names();
  names.emplace(names.begin(), kAllPolicies);
  return names;
}

// A scenario's values apply where the command line has none.
PolicyArguments with_scenario(PolicyArguments arguments) {
  if (!arguments.subject.ends_with(".toml")) return arguments;
  const Scenario scenario = find_scenario(arguments.subject);
  arguments.subject = scenario.program;
  if (arguments.hardware.empty()) arguments.hardware = scenario.hardware;
  if (arguments.budget.empty() && scenario.budget_bytes) {
    arguments.budget = std::to_string(*scenario.budget_bytes);
  }
  if (arguments.policies.empty()) {
    for (const Policy policy : scenario.policies) arguments.policies.emplace_back(name(policy));
  }
  if (arguments.training.optimizer.empty()) arguments.training.optimizer = scenario.optimizer;
  if (arguments.microbatches == 0) arguments.microbatches = scenario.microbatches;
  return arguments;
}

std::int64_t parse_budget(const std::string& text) {
  try {
    const std::int64_t bytes = parse_bytes(text);
    if (bytes > 0) return bytes;
  } catch (const UnitError& error) {
    throw InputError("--budget", 0, error.what());
  }
  throw InputError("--budget", 0, "expected more than 0");
}

// per_process_memory_fraction of the allocator's options is a limit too: returns the smaller one.
std::int64_t budget_of(const PolicyRequest& request, std::int64_t asked_bytes) {
  const double fraction = request.plan.alloc_conf.per_process_memory_fraction;
  if (fraction >= 1) return asked_bytes;
  const auto allowed =
      static_cast<std::int64_t>(fraction * static_cast<double>(request.hardware.capacity_bytes));
  return std::min(asked_bytes, allowed);
}

// Returns the version of torch that captured the program; empty if the file does not say.
std::string_view torch_of(const Program& program) {
  const auto found = std::find_if(program.about.begin(), program.about.end(),
                                  [](const auto& entry) { return entry.first == "torch"; });
  return found == program.about.end() ? std::string_view{} : found->second;
}

}  // namespace

std::string policy_choices() {
  std::string first;
  for (const PolicyEntry& each : kPolicies) {
    if (each.asked != Asked::kFirst) continue;
    first += (first.empty() ? "" : ", ") + std::string(each.name);
  }
  return "Policies: all, " + list_of_policies() + " (default: " + first + ")";
}

void add_policy_options(CLI::App& command, PolicyArguments& arguments, Context& context) {
  CLI::Option* program =
      command
          .add_option("program", arguments.subject,
                      "A shipped program, a program file or a scenario (.toml); or "
                      "a model: hf:ORG/NAME, a config.json, torchvision:NAME, timm:NAME, a "
                      "pipeline's folder, FILE.py:FUNCTION or a script (.py)")
          ->required();
  CLI::Option* hardware = command
                              .add_option("--card", arguments.hardware,
                                          "A shipped card (`ferry hardware` lists them), or a file")
                              ->type_name("NAME");
  command
      .add_option("--budget", arguments.budget,
                  "Device memory that the training may use (default: the card's)")
      ->type_name("24GiB");
  command.add_flag("--allocated", arguments.allocated,
                   "Apply the budget to allocated bytes, as if memory did not fragment");
  CLI::Option* policy = command.add_option("--policy", arguments.policies,
                                           policy_choices())
                            ->type_name("NAME")
                            ->delimiter(',')
                            ->allow_extra_args(false);  // the next argument is the program
  CLI::Option* offload_all =
      command
          .add_option("--offload-all-as", arguments.offload_all_as,
                      "The algorithm of offload-all: trl, trl-untold, trl-stale-keys, "
                      "record-stream (default: trl)")
          ->type_name("NAME");
  add_model_options(command, arguments.model);
  add_training_options(command, arguments.training, context);
  command
      .add_option("--alloc-conf", arguments.alloc_conf,
                  "Options of PyTorch's allocator, as in PYTORCH_CUDA_ALLOC_CONF")
      ->type_name("OPTION:VALUE,...");
  command.add_flag("--segments-go-up", arguments.segments_go_up,
                   "Place allocator segments at increasing addresses (real drivers use decreasing "
                   "ones)");
  command.add_option("--microbatches", arguments.microbatches, "Micro-batches in a step")
      ->type_name("N")
      ->check(CLI::Range(1, 4096));
  CLI::Option* schedule = command
                              .add_option("--schedule", arguments.schedules,
                                          "Order of micro-batches: fbfb (default), ffbb, 1f1b")
                              ->type_name("NAME")
                              ->delimiter(',')
                              ->allow_extra_args(false);
  command
      .add_option(
          "--times", arguments.times,
          "Kernel times that `ferry calibrate` measured, or a profile that PyTorch exported; can "
          "be repeated: the first file that has an operator counts")
      ->type_name("FILE")
      ->allow_extra_args(false);
  command.add_flag("--unchecked", arguments.unchecked, "Do not check the stream order (faster)");
  command.add_flag("--no-spans", arguments.no_spans,
                   "Let `best` recompute whole modules or checkpoints only, no spans of operators");
  command.add_flag(
      "--no-modules", arguments.no_modules,
      "Recompute no modules, only spans of operators and existing calls of checkpoint: the "
      "plan needs no edits of the model");
  command.add_flag("--json", arguments.json, "Print JSON");
  command.add_flag("--csv", arguments.csv, "Print the rows as comma-separated values")
      ->excludes("--json");
  context.values[program] = shipped_programs;
  context.values[hardware] = shipped_cards;
  context.values[policy] = [] { return Values{names_or_all()}; };
  context.values[offload_all] = [] { return Values{names_of(kOffloadAllNames)}; };
  context.values[schedule] = [] { return Values{kOrderNames}; };
}

PolicyRequest understand_subject(PolicyArguments& arguments) {
  arguments = with_scenario(arguments);
  PolicyRequest request;
  // Checks the command line before it reads any file, so that an error names the option that is
  // wrong.
  const std::int64_t budget = arguments.budget.empty() ? 0 : parse_budget(arguments.budget);
  request.training = understand(arguments.training);
  request.plan.training = request.training.training;
  request.plan.workspace_bytes = request.training.workspace_bytes;
  if (!arguments.offload_all_as.empty()) {
    request.plan.offload_all = static_cast<OffloadAll>(
        choice("--offload-all-as", arguments.offload_all_as, names_of(kOffloadAllNames)));
  }
  request.plan.alloc_conf = parse_alloc_conf(arguments.alloc_conf, "--alloc-conf");
  request.plan.alloc_conf.segments_go_up = arguments.segments_go_up;
  if (!is_model(arguments.subject)) {
    refuse_model_options(arguments.subject, arguments.model);
    request.program = load_program(find_program(arguments.subject));
  }
  if (arguments.hardware.empty()) {
    throw InputError("--card", 0, "expected a card (`ferry hardware` lists them)");
  }
  request.hardware = find_hardware(arguments.hardware);
  if (is_model(arguments.subject)) {
    request.program = model_program(arguments.subject, arguments.model, request.hardware);
  }
  const std::string_view torch = torch_of(request.program);
  request.plan.alloc_conf.equal_blocks = equal_blocks_of(torch);
  request.plan.alloc_conf.keeps_workspaces = keeps_workspaces(torch);
  request.program_name = printable(request.program.name);
  request.hardware.description = printable(request.hardware.description);
  request.times = arguments.times;
  MeasuredTimes measured;
  for (const std::filesystem::path& file : arguments.times) measured.read(file);
  if (!arguments.times.empty()) {
    request.times_used = use_times(measured, request.hardware, request.program);
  }
  find_in_l2(request.hardware, request.program);
  request.plan.budget_bytes =
      budget_of(request, arguments.budget.empty() ? request.hardware.usable_bytes() : budget);
  request.plan.check = !arguments.unchecked;
  if (arguments.allocated) request.plan.judged = plan::Judged::kAllocated;
  request.plan.spans = !arguments.no_spans;
  request.plan.modules = !arguments.no_modules;
  return request;
}

PolicyRequest understand(const PolicyArguments& typed) {
  PolicyArguments arguments = typed;
  arguments.policies = chosen("--policy", typed.policies, names_or_all());
  const MicrobatchOrder order = order_of(arguments.schedules);
  PolicyRequest request = understand_subject(arguments);
  request.training = understand(with_captured(arguments.training, request.program));
  request.plan.training = request.training.training;
  if (arguments.microbatches == 0) arguments.microbatches = captured_microbatches(request.program);
  if (arguments.microbatches > 1) {
    try {
      request.program = with_microbatches(request.program, arguments.microbatches, order);
    } catch (const std::invalid_argument& error) {
      throw InputError(arguments.subject, 0, error.what());
    }
  }
  request.microbatches = std::max<std::int64_t>(arguments.microbatches, 1);
  const bool all = std::find(arguments.policies.begin(), arguments.policies.end(), kAllPolicies) !=
                   arguments.policies.end();
  if (all && arguments.policies.size() > 1) {
    throw InputError("--policy", 0, "expected 'all' alone, or names");
  }
  if (!all) {
    for (const std::string& policy : arguments.policies) {
      request.plan.policies.push_back(find_policy(policy).value());
    }
  }
  bool segments = false;
  try {
    segments = plan::has_segments(request.program, request.plan.modules);
  } catch (const std::invalid_argument& error) {
    throw InputError(arguments.subject, 0, error.what());
  }
  request.every_policy = request.plan.policies.empty();
  if (request.every_policy) {
    for (const PolicyEntry& each : kPolicies) {
      const bool asked = each.asked == Asked::kFirst || (all && each.asked == Asked::kInAll);
      if (asked && (segments || !each.for_segments)) request.plan.policies.push_back(each.policy);
    }
  }
  for (const Policy policy : request.plan.policies) {
    const bool chooses = plan::search_of(policy).choice == plan::Choice::kSpans;
    if (chooses && !plan::has_operators(request.program)) {
      throw InputError(
          arguments.subject, 0,
          "policy '" + std::string(name(policy)) + "' chooses operators: " + plan::kNoOperators);
    }
    if (segments || !is_for_segments(policy)) continue;
    throw InputError(
        arguments.subject, 0,
        "policy '" + std::string(name(policy)) + "' needs segments: " + plan::kNoSegments);
  }
  return request;
}

}  // namespace ferry::cli
