#include "cli/policies.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>

#include "cli/answer.h"
#include "cli/certificate.h"
#include "cli/console/choices.h"
#include "cli/console/context.h"
#include "cli/console/messages.h"
#include "cli/console/output.h"
#include "cli/console/shipped.h"
#include "cli/console/stop.h"
#include "cli/moves_text.h"
#include "cli/next_step.h"
#include "formats/error.h"
#include "formats/microbatches.h"
#include "formats/printable.h"
#include "formats/program_file.h"
#include "plan/policies.h"
#include "plan/span_model.h"
#include "plan/words.h"
#include "scenarios/l2.h"
#include "scenarios/programs.h"
#include "scenarios/scenario.h"
#include "scenarios/units.h"

namespace ferry::cli {

namespace {

// Formats 1853 as "1.853".
std::string decimal(std::int64_t thousandths) {
  return fmt::format("{}.{:03}", thousandths / 1000, thousandths % 1000);
}

const std::vector<std::string> kOrderNames = {"fbfb", "ffbb", "1f1b"};

MicrobatchOrder parse_order(const std::string& name) {
  constexpr MicrobatchOrder kOrders[] = {MicrobatchOrder::kFbfb, MicrobatchOrder::kFfbb,
                                         MicrobatchOrder::kOneForwardOneBackward};
  return kOrders[choice("--order", name, kOrderNames)];
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

// A fraction of the card's memory is a limit like a budget.
std::int64_t budget_of(const PolicyRequest& request, std::int64_t asked_bytes) {
  const double fraction = request.plan.alloc_conf.per_process_memory_fraction;
  if (fraction >= 1) return asked_bytes;
  const auto allowed =
      static_cast<std::int64_t>(fraction * static_cast<double>(request.hardware.capacity_bytes));
  return std::min(asked_bytes, allowed);
}

// "allocator: expandable_segments:True\n"; empty for the usual one.
std::string allocator_line(const PolicyRequest& request) {
  const std::string options = to_string(request.plan.alloc_conf);
  return options.empty() ? "" : fmt::format("allocator: {}\n", options);
}

// "best-expandable: with PYTORCH_CUDA_ALLOC_CONF=…\n", of rows of another allocator than asked for.
std::string other_allocators(const PolicyRequest& request, const plan::PlanResult& result) {
  std::string text;
  for (const plan::PolicyRow& row : result.rows) {
    if (row.alloc_conf == to_string(request.plan.alloc_conf)) continue;
    text += fmt::format("{}: with PYTORCH_CUDA_ALLOC_CONF={}\n", row.policy, row.alloc_conf);
  }
  return text;
}

bool any_fits(const plan::PlanResult& result) {
  for (const plan::PolicyRow& row : result.rows) {
    if (row.policy == plan::kBestExpandable && row.is_answer()) return true;
  }
  // If a search was asked for, its row is the answer (the widest search's); else any row will do.
  for (const Policy search : {Policy::kBest, Policy::kMixed, Policy::kBudget}) {
    for (const plan::PolicyRow& row : result.rows) {
      if (row.policy == name(search)) return row.is_answer();
    }
  }
  return std::any_of(result.rows.begin(), result.rows.end(),
                     [](const plan::PolicyRow& row) { return row.is_answer(); });
}

// The text of a row in the column "fits".
std::string verdict(const plan::PolicyRow& row) {
  if (!row.simulation.errors.empty()) return "failed";
  if (row.useless) return "useless";
  return row.fits ? "yes" : "no";
}

// "Captured: model GPT-2 124M, batch 8, …\n": what the answer is of. Empty: the file does not say.
std::string captured_line(const Program& program) {
  constexpr std::array kTold = {"model", "script", "batch", "tokens", "image", "dtype"};
  std::string text;
  for (const std::string_view key : kTold) {
    for (const auto& [name, value] : program.about) {
      if (name != key) continue;
      text += fmt::format("{}{} {}", text.empty() ? "Captured: " : ", ", name, printable(value));
    }
  }
  return text.empty() ? "" : text + ".\n";
}

// What the plan of the best row does.
std::string words_line(const PolicyRequest& request, const plan::PlanResult& result) {
  const plan::PolicyRow* row = plan::best_row(result);
  if (!row) return "";
  const plan::Outlined* own = row->candidate.outlined.get();
  const std::vector<std::string>& names = own ? own->modules : result.segments;
  const plan::Mix& mix = row->candidate.mix;
  const plan::Survey& survey = own ? own->survey : result.survey;
  const bool chosen_here =
      mix.recompute.size() == names.size() && mix.packs.size() == survey.packs.size();
  if (!chosen_here) return "";  // it ran from a file
  const std::string words =
      own && !own->spans.empty()
          ? plan::in_words(plan::described(request.program, own->spans), mix, own->survey)
          : plan::in_words(mix, names, survey);
  return words.empty() ? "" : fmt::format("{}: {}\n", row->policy, words);
}

}  // namespace

std::string policy_choices() {
  std::string first;
  for (const PolicyEntry& each : kPolicies) {
    if (each.asked != Asked::kFirst) continue;
    first += (first.empty() ? "" : ", ") + std::string(each.name);
  }
  return "all, " + list_of_policies() + " (default: " + first + ")";
}

void add_policy_options(CLI::App& command, PolicyArguments& arguments, Context& context) {
  CLI::Option* program = command
                             .add_option("program", arguments.subject,
                                         "A shipped program, a program file, or a scenario (.toml)")
                             ->required();
  CLI::Option* hardware =
      command.add_option("--card,--hardware", arguments.hardware, "A shipped card, or a file")
          ->type_name("NAME");
  command.add_option("--budget", arguments.budget, "Device memory to fit in (default: the card's)")
      ->type_name("24GiB");
  command.add_flag("--allocated", arguments.allocated,
                   "The budget is of allocated bytes, as if the allocator had no fragments");
  CLI::Option* policy = command.add_option("--policy", arguments.policies,
                                           policy_choices())
                            ->type_name("NAME")
                            ->delimiter(',')
                            ->allow_extra_args(false);  // the next argument is the program
  CLI::Option* offload_all =
      command
          .add_option("--offload-all-as", arguments.offload_all_as,
                      "Whose algorithm offload-all is: trl, trl-untold, trl-stale-keys, "
                      "record-stream (default: trl)")
          ->type_name("NAME");
  add_training_options(command, arguments.training, context);
  command
      .add_option("--alloc-conf", arguments.alloc_conf,
                  "The allocator's options, as in PYTORCH_CUDA_ALLOC_CONF")
      ->type_name("OPTION:VALUE,...");
  command.add_flag("--segments-go-up", arguments.segments_go_up,
                   "The card puts each segment above the last, not below, as drivers do");
  command.add_option("--microbatches", arguments.microbatches, "Forwards and backwards in a step")
      ->type_name("N")
      ->check(CLI::Range(1, 4096));
  CLI::Option* order =
      command.add_option("--order", arguments.order, "Of micro-batches: fbfb, ffbb, 1f1b")
          ->capture_default_str();
  command
      .add_option(
          "--times", arguments.times,
          "Measured kernel times (`ferry calibrate`), or a profile that PyTorch exported; may "
          "be given again, the first counts")
      ->type_name("FILE")
      ->allow_extra_args(false);
  command.add_flag("--unchecked", arguments.unchecked, "Do not check the stream order: faster");
  command.add_flag("--no-spans", arguments.no_spans,
                   "No spans of operators in `best`: whole modules or checkpoints are recomputed");
  command.add_flag(
      "--no-modules", arguments.no_modules,
      "No modules are recomputed, only spans and calls of checkpoint: for a model that "
      "nobody edits");
  command.add_flag("--json", arguments.json, "For machines");
  command.add_flag("--csv", arguments.csv, "The rows as comma-separated values")
      ->excludes("--json");
  context.values[program] = shipped_programs;
  context.values[hardware] = shipped_cards;
  context.values[policy] = [] { return Values{names_or_all()}; };
  context.values[offload_all] = [] { return Values{names_of(kOffloadAllNames)}; };
  context.values[order] = [] { return Values{kOrderNames}; };
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
  request.program = load_program(find_program(arguments.subject));
  if (arguments.hardware.empty()) {
    throw InputError("--card", 0, "expected a card (`ferry hardware` lists them)");
  }
  request.hardware = find_hardware(arguments.hardware);
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
  const MicrobatchOrder order = parse_order(arguments.order);
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

std::string times_line(const PolicyRequest& request) {
  if (request.times.empty()) return "";
  const TimesUsed& used = request.times_used;
  std::string files;
  for (const std::filesystem::path& file : request.times) {
    files += (files.empty() ? "" : ", ") + file.filename().string();
  }
  const std::string scaled =
      used.scaled == 0 ? "" : fmt::format(", {} scaled from other calls", used.scaled);
  return fmt::format("times: {} of {} ops measured{} ({})\n", used.measured, used.all, scaled,
                     files);
}

nlohmann::ordered_json times_json(const PolicyRequest& request) {
  if (request.times.empty()) return nullptr;
  const TimesUsed& used = request.times_used;
  nlohmann::ordered_json json = {
      {"ops", used.all}, {"measured", used.measured}, {"scaled", used.scaled}};
  for (const std::filesystem::path& file : request.times) json["files"].push_back(file.string());
  return json;
}

std::string to_table(const PolicyRequest& request, const plan::PlanResult& result) {
  std::string text =
      fmt::format("{} on {} ({}), budget {}\n{}Included: {}; the step is {}.\n{}{}\n",
                  request.program_name, request.hardware.name, request.hardware.description,
                  format_bytes(request.plan.budget_bytes), captured_line(request.program),
                  included(request.training), step_of(request.training, request.microbatches),
                  allocator_line(request), times_line(request));
  text += fmt::format("{:<18} {:>10} {:>11} {:>11} {:>11} {:>10} {:>9} {:>8} {:>7} {:>8}\n",
                      "policy", "needs", "allocated", "reserved", "host", "step", "slowdown",
                      "overlap", "fits", "hazards");
  for (const plan::PolicyRow& row : result.rows) {
    const sim::Simulation& run = row.simulation;
    const bool ran = run.errors.empty();  // what is of a part of the training is not told
    const auto overlap = run.overlap_permille();
    const auto told = [&](std::string cell) { return ran ? std::move(cell) : "-"; };
    text += fmt::format("{:<18} {:>10} {:>11} {:>11} {:>11} {:>10} {:>9} {:>8} {:>7} {:>8}\n",
                        row.policy, told(row.least_bytes > 0 ? format_bytes(row.least_bytes) : "-"),
                        told(format_bytes(run.device_peak_bytes)),
                        told(format_bytes(run.device_reserved_bytes)),
                        told(format_bytes(run.host_peak_bytes)), told(format_time(run.step_ns)),
                        told(decimal(plan::slowdown_permille(run.step_ns, result.keep_ns))),
                        told(overlap ? decimal(*overlap) : "-"), verdict(row),
                        request.plan.check ? std::to_string(run.hazards.size()) : "-");
  }
  text += "\n" + kinds_table(result) + "\n";
  for (const plan::PolicyRow& row : result.rows) {
    const CheckpointStatistics& segments = row.simulation.checkpoints;
    if (segments.segments != 0) {
      const auto& own = row.candidate.outlined;
      const std::size_t each = own ? own->modules.size() : result.segments.size();
      const auto called = static_cast<std::int64_t>(each) * request.microbatches;
      text += fmt::format("{}: {} of {} segments recomputed, {} recomputes\n", row.policy,
                          segments.segments, called, segments.recomputes);
    }
    text += moves_text(row, request.plan.offload_all);
  }
  text += other_allocators(request, result);
  text += words_line(request, result) + certificate_text(result);
  const std::string says = request.answers ? answer(request, result) : "";
  return text + (says.empty() ? "" : "\n" + says + "\n");
}

nlohmann::ordered_json to_json(const PolicyRequest& request, const plan::PlanResult& result) {
  const auto whose = kOffloadAllNames[static_cast<std::size_t>(request.plan.offload_all)];
  nlohmann::ordered_json json = {{"schema", 1},
                                 {"program", request.program_name},
                                 {"hardware", request.hardware.name},
                                 {"budget_bytes", request.plan.budget_bytes},
                                 {"optimizer", request.training.optimizer},
                                 {"alloc_conf", to_string(request.plan.alloc_conf)},
                                 {"offload_all_as", whose},
                                 {"microbatches", request.microbatches},
                                 {"times", times_json(request)},
                                 {"rows", nlohmann::ordered_json::array()}};
  add_certificate(json, result);
  if (request.answers) json["answer"] = answer(request, result);
  for (const plan::PolicyRow& row : result.rows) {
    const sim::Simulation& run = row.simulation;
    const auto overlap = run.overlap_permille();
    nlohmann::ordered_json entry = {
        {"policy", row.policy},
        {"alloc_conf", row.alloc_conf},
        {"device_peak_bytes", run.device_peak_bytes},
        {"device_requested_bytes", run.device_requested_bytes},
        {"device_reserved_bytes", run.device_reserved_bytes},
        {"peak_bytes", kinds_json(run.peak_kinds)},
        {"least_bytes", nullptr},
        {"host_peak_bytes", run.host_peak_bytes},
        {"step_ns", run.step_ns},
        {"slowdown",
         static_cast<double>(plan::slowdown_permille(run.step_ns, result.keep_ns)) / 1000},
        {"overlap", nullptr},
        {"fits", row.fits},
        {"refusal", nullptr},
        {"useless", row.useless},
        {"errors", nlohmann::ordered_json::array()},
        {"hazards", nullptr}};
    for (const sim::ProgramError& error : run.errors) {
      entry["errors"].push_back({{"line", error.line}, {"message", error.message}});
    }
    if (!row.refusal.empty()) entry["refusal"] = row.refusal;
    if (row.least_bytes > 0) entry["least_bytes"] = row.least_bytes;
    if (!run.errors.empty()) entry["slowdown"] = nullptr;
    if (overlap) entry["overlap"] = static_cast<double>(*overlap) / 1000;
    if (request.plan.check) entry["hazards"] = run.hazards.size();
    entry["compute_ns"] = run.compute_ns;
    entry["optimizer_ns"] = run.optimizer_ns;
    entry["num_alloc_retries"] = run.num_alloc_retries;
    entry["recomputed_segments"] = run.checkpoints.segments;
    entry["recomputes"] = run.checkpoints.recomputes;
    entry["offloaded_bytes"] = run.d2h_bytes;
    entry["reloaded_bytes"] = run.h2d_bytes;
    entry["vain_bytes"] = run.statistics.vain_bytes;
    entry["compute_waits"] = run.statistics.compute_waits;
    entry["forward_stash_peak_bytes"] = run.statistics.forward_stash_peak_bytes;
    entry["backward_stash_peak_bytes"] = run.statistics.backward_stash_peak_bytes;
    entry["kept_peak_bytes"] = run.resident.kept_peak_bytes;
    entry["waiting_peak_bytes"] = run.resident.waiting_peak_bytes;
    entry["deferred_peak_bytes"] = run.deferred_peak_bytes;
    entry["idle_for_copies_ns"] = run.compute_idle_for_copies_ns;
    entry["idle_for_host_ns"] = idle_for_host_ns(run);
    entry["slowed_by_copies_ns"] = run.slowed_by_copies_ns;
    entry["d2h_ns"] = run.d2h_ns;
    entry["h2d_ns"] = run.h2d_ns;
    add_gap(entry, result, row);
    json["rows"].push_back(std::move(entry));
  }
  return json;
}

namespace {

// True if the run ended before its step did.
bool is_beyond_limits(const plan::PolicyRow& row) {
  return std::any_of(row.simulation.errors.begin(), row.simulation.errors.end(),
                     [](const sim::ProgramError& error) { return error.beyond_limits; });
}

// True if the row is safe; a run that was cut short has leftovers.
bool is_safe(const plan::PolicyRow& row) {
  return is_beyond_limits(row) ? row.simulation.hazards.empty() : row.is_safe();
}

// Reports what went wrong.
void complain(const PolicyRequest& request, const plan::PolicyRow& row) {
  for (const check::Hazard& hazard : row.simulation.hazards) {
    tell("{}: {}", row.policy, to_string(hazard));
  }
  for (const sim::ProgramError& error : row.simulation.errors) {
    tell("{}: {}:{}: {}", row.policy, request.program_name, error.line, error.message);
  }
  if (row.simulation.leftovers.any()) {
    const sim::Leftovers& left = row.simulation.leftovers;
    tell("{}: left after the step: {} storages, {} events, {} of host memory{}", row.policy,
         left.storages, left.events, format_bytes(left.host_bytes),
         left.core ? ", and something in the core" : "");
  }
  for (const std::string& warning : row.simulation.warnings) {
    tell("{}: {}", row.policy, warning);
  }
}

}  // namespace

int report(const PolicyArguments& arguments, const PolicyRequest& request,
           const plan::PlanResult& result, const plan::PolicyRow* written) {
  if (arguments.json) {
    nlohmann::ordered_json json = to_json(request, result);
    if (request.answers) json["next_steps"] = next_steps(arguments, request, result);
    if (result.stopped) json["stopped"] = true;
    if (!arguments.output.empty()) json["written"] = nullptr;
    if (written) {
      json["written"] = {{"file", arguments.output.string()}, {"policy", written->policy}};
    }
    print_json(json);
  } else if (arguments.csv) {
    print_csv(to_json(request, result)["rows"]);
  } else {
    print_text(to_table(request, result));
    if (written) {
      print_text(
          fmt::format("written: {}, the plan of {}\n", arguments.output.string(), written->policy));
    }
    if (request.answers) print_text(next_steps_text(next_steps(arguments, request, result)));
  }
  if (result.stopped) {
    const std::size_t asked = arguments.plan.empty() ? request.plan.policies.size() : 1;
    return told_stopped(fmt::format("{} of {} {}", result.rows.size(), asked,
                                    arguments.plan.empty() ? "policies" : "plans"));
  }
  return told_faults(request, result.rows, any_fits(result) ? kOk : kDoesNotFit);
}

int told_faults(const PolicyRequest& request, const std::vector<plan::PolicyRow>& rows, int code) {
  for (const plan::PolicyRow& row : rows) {
    // Faults of another scheduler are reported; they set the exit code only if it was asked for.
    const bool told = row.candidate.trl && request.every_policy;
    if (is_beyond_limits(row) && code == kOk) code = kDoesNotFit;
    if (!is_safe(row) && !told) code = kViolated;
    complain(request, row);
  }
  return code;
}

}  // namespace ferry::cli
