#include "cli/pareto_plan.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <utility>

#include "cli/certificate.h"
#include "cli/console/exit_codes.h"
#include "cli/console/output.h"
#include "cli/console/progress.h"
#include "cli/console/stop.h"
#include "cli/rows.h"
#include "formats/error.h"
#include "plan/pareto.h"
#include "scenarios/units.h"

namespace ferry::cli {

namespace {

constexpr std::size_t kBudgets = 20;

// Returns a plan result that has the point as its only row.
plan::PlanResult alone(const plan::ParetoResult& result, const plan::ParetoPoint& point) {
  plan::PlanResult one;
  one.rows = {point.row};
  one.keep_ns = result.keep_ns;
  one.keep_bytes = result.keep_bytes;
  one.certificate = point.certificate;
  return one;
}

// The memory that every plan needs at least; 0 if it is not known.
std::int64_t least_bytes(const plan::ParetoResult& result) {
  if (result.points.empty() || !result.points.front().certificate) return 0;
  return result.points.front().certificate->least_bytes;
}

std::string to_table(const PolicyRequest& request, const plan::ParetoResult& result) {
  std::string text =
      fmt::format("{} on {} ({})\nIncluded: {}; the step is {}.\n{}", request.program_name,
                  request.hardware.name, request.hardware.description, included(request.training),
                  step_of(request.training, request.microbatches), times_line(request));
  text += fmt::format("The smallest budget with a plan is {}. Every plan needs at least {}.\n\n",
                      format_bytes(result.floor_bytes), format_bytes(least_bytes(result)));
  text += fmt::format("{:>12}{:>12}{:>12}{:>12}{:>11}{:>10}{:>9}{:>9}\n", "budget", "allocated",
                      "reserved", "host", "step", "slowdown", "gap", "hazards");
  for (const plan::ParetoPoint& point : result.points) {
    const sim::Simulation& run = point.row.simulation;
    const auto slowdown = plan::slowdown_permille(run.step_ns, result.keep_ns);
    const auto gap = gap_permille(alone(result, point), point.row);
    text += fmt::format("{:>12}{:>12}{:>12}{:>12}{:>11}{:>10}{:>9}{:>9}\n",
                        format_bytes(point.budget_bytes), format_bytes(run.device_peak_bytes),
                        format_bytes(run.device_reserved_bytes), format_bytes(run.host_peak_bytes),
                        format_time(run.step_ns),
                        fmt::format("{}.{:03}", slowdown / 1000, slowdown % 1000),
                        gap ? fmt::format("{}.{} %", *gap / 10, *gap % 10) : "-",
                        request.plan.check ? fmt::format("{}", run.hazards.size()) : "-");
  }
  return text;
}

}  // namespace

nlohmann::ordered_json to_json(const PolicyRequest& request, const plan::ParetoResult& result) {
  nlohmann::ordered_json json = {{"schema", 1},
                                 {"program", request.program_name},
                                 {"hardware", request.hardware.name},
                                 {"optimizer", request.training.optimizer},
                                 {"alloc_conf", to_string(request.plan.alloc_conf)},
                                 {"microbatches", request.microbatches},
                                 {"times", times_json(request)},
                                 {"keep_ns", result.keep_ns},
                                 {"keep_bytes", result.keep_bytes},
                                 {"floor_bytes", result.floor_bytes},
                                 {"least_bytes", least_bytes(result)},
                                 {"rows", nlohmann::ordered_json::array()}};
  for (const plan::ParetoPoint& point : result.points) {
    nlohmann::ordered_json entry = {{"budget_bytes", point.budget_bytes}};
    entry.update(cli::to_json(request, alone(result, point))["rows"][0]);
    json["rows"].push_back(std::move(entry));
  }
  return json;
}

plan::ParetoResult pareto_curve(const PolicyRequest& request, const std::string& program) {
  try {
    return plan::pareto(request.program, request.hardware, request.plan, kBudgets);
  } catch (const std::invalid_argument& error) {
    throw InputError(program, 0, error.what());
  }
}

void add_pareto_option(CLI::App& command, bool& asked) {
  CLI::Option* pareto =
      command.add_flag("--pareto", asked, "Print the fastest plan for each of 20 budgets");
  for (const char* other : {"--policy", "--budget", "--output", "--stages"}) {
    pareto->excludes(command.get_option(other));
  }
}

int plan_pareto(const PolicyArguments& arguments) {
  PolicyRequest request = understand(arguments);
  ProgressLine progress;
  request.plan.progress = [&](std::string_view policy, std::size_t done, std::size_t all) {
    progress.show(done, all, policy);
  };
  request.plan.stop = is_stopped;
  plan::ParetoResult result = pareto_curve(request, arguments.subject);
  progress.clear();
  if (arguments.json) {
    nlohmann::ordered_json json = to_json(request, result);
    if (result.stopped) json["stopped"] = true;
    print_json(json);
  } else if (arguments.csv) {
    print_csv(to_json(request, result)["rows"]);
  } else {
    print_text(to_table(request, result));
  }
  if (result.stopped) return told_stopped("part of the search for the curve");
  std::vector<plan::PolicyRow> rows;
  for (plan::ParetoPoint& point : result.points) rows.push_back(std::move(point.row));
  return told_faults(request, rows, rows.empty() ? kDoesNotFit : kOk);
}

}  // namespace ferry::cli
