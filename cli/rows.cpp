#include "cli/rows.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string_view>

#include "cli/answer.h"
#include "cli/certificate.h"
#include "cli/console/messages.h"
#include "cli/console/output.h"
#include "cli/console/stop.h"
#include "cli/moves_text.h"
#include "cli/next_step.h"
#include "cli/peak_owners.h"
#include "formats/printable.h"
#include "plan/words.h"
#include "scenarios/units.h"

namespace ferry::cli {

namespace {

// Formats 1853 as "1.853".
std::string decimal(std::int64_t thousandths) {
  return fmt::format("{}.{:03}", thousandths / 1000, thousandths % 1000);
}

// Returns "allocator: expandable_segments:True\n"; empty for the default options.
std::string allocator_line(const PolicyRequest& request) {
  const std::string options = to_string(request.plan.alloc_conf);
  return options.empty() ? "" : fmt::format("allocator: {}\n", options);
}

// Returns "best-expandable: with PYTORCH_CUDA_ALLOC_CONF=…\n" for each row whose allocator options
// differ from the request.
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
  // If the request has searches, the row of the widest one decides; otherwise any row that fits.
  for (const Policy search : {Policy::kBest, Policy::kMixed, Policy::kOffloadSome}) {
    for (const plan::PolicyRow& row : result.rows) {
      if (row.policy == name(search)) return row.is_answer();
    }
  }
  return std::any_of(result.rows.begin(), result.rows.end(),
                     [](const plan::PolicyRow& row) { return row.is_answer(); });
}

// Returns the text of a row in the column "fits".
std::string verdict(const plan::PolicyRow& row) {
  if (!row.simulation.errors.empty()) return "failed";
  if (row.useless) return "useless";
  return row.fits ? "yes" : "no";
}

// Says in words what the plan of the best row does.
std::string words_line(const PolicyRequest& request, const plan::PlanResult& result) {
  const plan::PolicyRow* row = plan::best_row(result);
  if (!row) return "";
  const plan::Spanned* own = row->candidate.spanned.get();
  const plan::Mix& mix = row->candidate.mix;
  const plan::Survey& survey = own ? own->survey : result.survey;
  const bool chosen_here = mix.recompute.size() == (own ? 0 : result.segments.size()) &&
                           mix.packs.size() == survey.packs.size();
  if (!chosen_here) return "";  // it ran from a file
  const std::string words =
      own ? plan::in_words(plan::described(request.program, own->spans), mix, own->survey)
          : plan::in_words(mix, result.segments, survey);
  return words.empty() ? "" : fmt::format("{}: {}\n", row->policy, words);
}

}  // namespace

std::string captured_line(const Program& program) {
  constexpr std::array kTold = {"model", "script", "batch", "tokens",
                                "image", "dtype",  "lora",  "inputs"};
  std::string text;
  for (const std::string_view key : kTold) {
    for (const auto& [name, value] : program.about) {
      if (name != key) continue;
      text += fmt::format("{}{} {}", text.empty() ? "Captured: " : ", ", name, printable(value));
    }
  }
  return text.empty() ? "" : text + ".\n";
}

std::int64_t said_number(const Program& program, std::string_view name) {
  std::int64_t value = 0;
  for (const auto& [key, text] : program.about) {
    if (key == name) std::from_chars(text.data(), text.data() + text.size(), value);
  }
  return value;
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
    const bool ran = run.errors.empty();  // figures of a training that failed are not shown
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
  text += "\n" + kinds_table(result) + "\n" + peak_owners_text(request, result);
  for (const plan::PolicyRow& row : result.rows) {
    const CheckpointStatistics& segments = row.simulation.checkpoints;
    if (segments.segments != 0) {
      const auto called = static_cast<std::int64_t>(result.segments.size()) * request.microbatches;
      text += fmt::format("{}: {} of {} segments recomputed, {} recomputes\n", row.policy,
                          segments.segments, called, segments.recomputes);
    }
    text += moves_text(row, request.plan.offload_all);
  }
  text += other_allocators(request, result);
  text += words_line(request, result) + certificate_text(result);
  return text;
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
  json["peak_owners"] = peak_owners_json(request, result);
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

// True if the run reached a limit of the simulator before its end.
bool is_beyond_limits(const plan::PolicyRow& row) {
  return std::any_of(row.simulation.errors.begin(), row.simulation.errors.end(),
                     [](const sim::ProgramError& error) { return error.beyond_limits; });
}

// True if the row is safe. The leftovers of a run that was cut short do not count.
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
         left.core ? ", and objects of the core" : "");
  }
  for (const std::string& warning : row.simulation.warnings) {
    tell("{}, in the simulated training: {}", row.policy, warning);
  }
}

}  // namespace

int report(const PolicyArguments& arguments, const PolicyRequest& request,
           const plan::PlanResult& result, Answers answers, const plan::PolicyRow* written) {
  if (arguments.json) {
    nlohmann::ordered_json json = to_json(request, result);
    if (answers == Answers::kYes) {
      json["answer"] = answer(arguments, request, result);
      json["next_steps"] = next_steps(arguments, request, result);
    }
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
    std::fflush(stdout);  // the answer may take a while
    if (answers == Answers::kYes) {
      const std::string says = answer(arguments, request, result);
      if (!says.empty()) print_text("\n" + says + "\n");
    }
    if (written) {
      print_text(
          fmt::format("written: {}, the plan of {}\n", arguments.output.string(), written->policy));
    }
    if (answers == Answers::kYes)
      print_text(next_steps_text(next_steps(arguments, request, result)));
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
    // Faults of TRL's scheduler are printed; they set the exit code only if the user named it.
    const bool told = row.candidate.trl && request.every_policy;
    if (is_beyond_limits(row) && code == kOk) code = kDoesNotFit;
    if (!is_safe(row) && !told) code = kViolated;
    complain(request, row);
  }
  return code;
}

}  // namespace ferry::cli
