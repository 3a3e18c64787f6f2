#include "cli/pipeline_plan.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>

#include "cli/console/choices.h"
#include "cli/console/context.h"
#include "cli/console/messages.h"
#include "cli/console/output.h"
#include "cli/console/progress.h"
#include "cli/console/stop.h"
#include "cli/rows.h"
#include "formats/atomic_file.h"
#include "formats/error.h"
#include "formats/staged_plan.h"
#include "plan/pipeline_planner.h"
#include "scenarios/policy.h"
#include "scenarios/units.h"

namespace ferry::cli {

namespace {

using Json = nlohmann::ordered_json;

void refuse_what_is_for_one_gpu(const PolicyArguments& arguments) {
  refuse_for_pipelines(arguments.training);
  if (arguments.allocated) {
    throw InputError("--allocated", 0,
                     "expected no --stages: a pipeline's budget is for reserved bytes");
  }
  if (arguments.no_spans || arguments.no_modules) {
    throw InputError(arguments.no_spans ? "--no-spans" : "--no-modules", 0,
                     "expected no --stages: a pipeline's stages recompute whole modules");
  }
  if (!arguments.offload_all_as.empty()) {
    throw InputError("--offload-all-as", 0,
                     "expected no --stages: a pipeline's stages use Ferry's own offload");
  }
}

struct Request {
  PolicyRequest subject;
  plan::PipelinePlanRequest plan;
  std::string balance;
};

Request understand_pipeline(PolicyArguments& arguments, const PipelineArguments& pipeline) {
  refuse_what_is_for_one_gpu(arguments);
  if (!arguments.output.empty() && pipeline.relay_skips) {
    throw InputError("--output", 0,
                     "expected no --relay-skips: Ferry's pipelines, which run the plan, copy skip "
                     "tensors directly");
  }
  Request request;
  plan::PipelinePlanRequest& plan = request.plan;
  plan.policies = chosen("--policy", arguments.policies, names_of(plan::kPipelinePolicies));
  for (const std::string& schedule : arguments.schedules) {
    plan.schedules.push_back(
        static_cast<ScheduleKind>(choice("--schedule", schedule, names_of(kScheduleNames))));
  }
  const auto balances = names_of(plan::kStageBalanceNames);
  const std::size_t balance = choice("--balance", pipeline.balance, balances);
  request.balance = balances[balance];
  plan.balance = static_cast<plan::StageBalance>(balance);
  plan.microbatches = std::max<std::size_t>(arguments.microbatches, 1);
  // A scenario's policies and micro-batches are for one GPU, so they are not used.
  request.subject = understand_subject(arguments);
  if (plan.policies.empty()) {
    plan.policies.assign(std::begin(plan::kPipelinePolicies), std::end(plan::kPipelinePolicies));
  }
  plan.devices = pipeline.stages;
  plan.interleaved_each = pipeline.stages_per_device;
  plan.portals = !pipeline.relay_skips;
  plan.budget_bytes = request.subject.plan.budget_bytes;
  plan.optimizer = request.subject.plan.training.optimizer;
  plan.alloc_conf = request.subject.plan.alloc_conf;
  plan.check = request.subject.plan.check;
  return request;
}

// Formats 273 as "27.3%".
std::string percent(std::int64_t permille) {
  return fmt::format("{}.{}%", permille / 10, permille % 10);
}

std::string units_of(const Stage& stage) {
  return stage.first_unit == stage.last_unit ? stage.first_unit
                                             : stage.first_unit + " to " + stage.last_unit;
}

std::string cut_table(const Request& request, const plan::PipelineCut& cut) {
  std::string text = fmt::format("{} stage{} per GPU, balanced by {}:\n", cut.stages_each,
                                 cut.stages_each == 1 ? "" : "s", request.balance);
  const bool time = request.plan.balance == plan::StageBalance::kTime;
  for (std::size_t s = 0; s < cut.staged.stages.size(); ++s) {
    text += fmt::format("  {:>2} on GPU {:<2} {:>10}  {}\n", s, s % request.plan.devices,
                        time ? format_time(cut.costs[s]) : format_bytes(cut.costs[s]),
                        units_of(cut.staged.stages[s]));
  }
  return text;
}

// Returns the names of globals that several stages have.
std::vector<std::string> replicated(const StagedProgram& staged) {
  std::vector<std::string> names;
  for (const Slot of : staged.replica_of) {
    if (of == kNoSlot) continue;
    const std::string& name = staged.program.globals[of].name;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

std::string row_text(const Request& request, const plan::PipelineRow& row) {
  const sim::PipelineSimulation& run = row.simulation;
  std::string text = fmt::format("{:<12} {:<11} {:>10} {:>7} {:>7} {:>11} {:>5} {:>8} ",
                                 name(row.schedule), row.policy, format_time(run.step_ns),
                                 percent(run.bubble_permille()), percent(row.closed_permille),
                                 format_bytes(run.reserved_bytes()), row.fits ? "yes" : "no",
                                 request.plan.check ? std::to_string(run.hazards.size()) : "-");
  for (const sim::DeviceRun& device : run.devices) {
    text += fmt::format(" {:>10}", format_bytes(device.peak_bytes));
  }
  return text + "\n";
}

std::string to_table(const Request& request, const plan::PipelinePlan& plan) {
  const PolicyRequest& subject = request.subject;
  std::string text = fmt::format(
      "{} on {} x {} ({}), budget {} each\n"
      "Included: {}; the program is one micro-batch, a step has {}.\n{}\n",
      subject.program_name, request.plan.devices, subject.hardware.name,
      subject.hardware.description, format_bytes(subject.plan.budget_bytes),
      included(subject.training), request.plan.microbatches, times_line(subject));
  for (const plan::PipelineCut& cut : plan.cuts) text += cut_table(request, cut);
  text += fmt::format("\n{:<12} {:<11} {:>10} {:>7} {:>7} {:>11} {:>5} {:>8}  {}\n", "schedule",
                      "policy", "step", "bubble", "formula", "reserved", "fits", "hazards",
                      "allocated, by GPU");
  for (const plan::PipelineRow& row : plan.rows) text += row_text(request, row);
  text += "\n";
  for (const plan::PipelineRow& row : plan.rows) {
    if (row.policy != plan::kPipelinePolicies[3]) continue;
    text += fmt::format("{}, {}:", name(row.schedule), row.policy);
    for (const StagePolicy policy : row.stage_policies) {
      text += " " + std::string(name(policy));
    }
    text += "\n";
  }
  for (const std::string& reason : plan.left_out) text += "left out: " + reason + "\n";
  for (const std::string& name : replicated(plan.cuts.front().staged)) {
    text += "on several stages, gradients are not exchanged: " + name + "\n";
  }
  return text;
}

Json row_json(const Request& request, const plan::PipelineRow& row) {
  const sim::PipelineSimulation& run = row.simulation;
  Json json = {{"schedule", name(row.schedule)},
               {"policy", row.policy},
               {"cut", row.cut},
               {"step_ns", run.step_ns},
               {"bubble", static_cast<double>(run.bubble_permille()) / 1000},
               {"bubble_formula", static_cast<double>(row.closed_permille) / 1000},
               {"fits", row.fits},
               {"hazards", nullptr},
               {"host_peak_bytes", run.host_peak_bytes},
               {"stage_policies", Json::array()},
               {"devices", Json::array()}};
  if (request.plan.check) json["hazards"] = run.hazards.size();
  for (const StagePolicy policy : row.stage_policies) {
    json["stage_policies"].push_back(name(policy));
  }
  for (std::size_t d = 0; d < run.devices.size(); ++d) {
    const sim::DeviceRun& device = run.devices[d];
    json["devices"].push_back({{"peak_bytes", device.peak_bytes},
                               {"reserved_bytes", device.reserved_bytes},
                               {"compute_ns", device.compute_ns},
                               {"bubble", static_cast<double>(device.bubble_permille) / 1000},
                               {"microbatches_alive", row.alive[d]},
                               {"d2h_bytes", device.d2h_bytes},
                               {"h2d_bytes", device.h2d_bytes},
                               {"peer_bytes", device.peer_bytes}});
  }
  return json;
}

Json to_json(const Request& request, const plan::PipelinePlan& plan) {
  Json json = {{"schema", 1},
               {"kind", "pipeline"},
               {"program", request.subject.program_name},
               {"hardware", request.subject.hardware.name},
               {"budget_bytes", request.plan.budget_bytes},
               {"optimizer", request.subject.training.optimizer},
               {"alloc_conf", to_string(request.plan.alloc_conf)},
               {"devices", request.plan.devices},
               {"microbatches", request.plan.microbatches},
               {"balance", request.balance},
               {"relay_skips", !request.plan.portals},
               {"times", times_json(request.subject)},
               {"cuts", Json::array()},
               {"rows", Json::array()},
               {"left_out", plan.left_out},
               {"replicated", replicated(plan.cuts.front().staged)}};
  for (const plan::PipelineCut& cut : plan.cuts) {
    Json stages = Json::array();
    for (std::size_t s = 0; s < cut.staged.stages.size(); ++s) {
      const Stage& stage = cut.staged.stages[s];
      stages.push_back({{"device", s % request.plan.devices},
                        {"first_unit", stage.first_unit},
                        {"last_unit", stage.last_unit},
                        {"cost", cut.costs[s]}});
    }
    json["cuts"].push_back({{"stages_per_device", cut.stages_each}, {"stages", stages}});
  }
  for (const plan::PipelineRow& row : plan.rows) json["rows"].push_back(row_json(request, row));
  if (plan.stopped) json["stopped"] = true;
  return json;
}

// Writes the plan of the best row and returns the row. Writes nothing if no plan is safe, or if the
// search was stopped: then the best row may not be the best of all.
const plan::PipelineRow* write(const std::filesystem::path& output, const Request& request,
                               const plan::PipelinePlan& plan) {
  if (output.empty() || plan.stopped) return nullptr;
  const plan::PipelineRow* best = plan::best_row(plan);
  if (!best) {
    tell("{}: not written: no plan is safe", output.string());
    return nullptr;
  }
  const PolicyRequest& subject = request.subject;
  write_plan(output, plan::to_plan(subject.program, subject.hardware, request.plan, plan, *best));
  if (!best->fits) tell("{}: this plan does not fit", output.string());
  return best;
}

int complain(const plan::PipelinePlan& plan) {
  const bool fits = std::any_of(plan.rows.begin(), plan.rows.end(),
                                [](const plan::PipelineRow& row) { return row.fits; });
  int code = fits ? kOk : kDoesNotFit;
  for (const plan::PipelineRow& row : plan.rows) {
    const sim::PipelineSimulation& run = row.simulation;
    const std::string where = std::string(name(row.schedule)) + ", " + row.policy;
    if (!run.is_safe()) code = kViolated;
    for (const check::Hazard& hazard : run.hazards) {
      tell("{}: {}", where, to_string(hazard));
    }
    for (const std::string& error : run.errors) tell("{}: {}", where, error);
    if (run.leftovers.any()) {
      const sim::Leftovers& left = run.leftovers;
      tell("{}: left after the step: {} storages, {} events, {} of host memory{}", where,
           left.storages, left.events, format_bytes(left.host_bytes),
           left.core ? ", and objects of the core" : "");
    }
    for (const std::string& warning : run.warnings) tell("{}: {}", where, warning);
  }
  return code;
}

}  // namespace

std::string list_of_pipeline_policies() { return listed(names_of(plan::kPipelinePolicies)); }

void add_pipeline_options(CLI::App& command, PipelineArguments& arguments, Context& context) {
  CLI::Option* stages =
      command
          .add_option("--stages", arguments.stages,
                      "Plan a pipeline over N GPUs; the program is one micro-batch of the step")
          ->type_name("N")
          ->check(CLI::Range(1, 64));
  const auto add = [&](const char* name, auto& value, const char* help) {
    return command.add_option(name, value, help)->needs(stages)->group("Pipelines");
  };
  stages->group("Pipelines");
  add("--stages-per-device", arguments.stages_per_device,
      "Stages per GPU with --schedule interleaved (default: 2)")
      ->type_name("V")
      ->check(CLI::Range(2, 64));
  CLI::Option* balance =
      add("--balance", arguments.balance, "Make stages equal in time or memory (default: time)")
          ->type_name("WHAT");
  command
      .add_flag("--relay-skips", arguments.relay_skips,
                "Copy skip tensors through all stages between, to compare with direct copies")
      ->needs(stages)
      ->group("Pipelines");
  context.values[command.get_option("--policy")] = [] {
    Values values{policy_names()};
    for (const std::string_view each : plan::kPipelinePolicies) {
      if (!find_policy(each)) values.names.emplace_back(each);
    }
    return values;
  };
  CLI::Option* schedule = command.get_option("--schedule");
  schedule->description(schedule->get_description() +
                        "; with --stages: gpipe, 1f1b, interleaved (default: all possible ones)");
  context.values[schedule] = [] {
    Values values{names_of(kScheduleNames)};
    values.names.insert(values.names.end(), {"fbfb", "ffbb"});
    return values;
  };
  context.values[balance] = [] { return Values{names_of(plan::kStageBalanceNames)}; };
}

int plan_pipeline(PolicyArguments arguments, const PipelineArguments& pipeline) {
  Request request = understand_pipeline(arguments, pipeline);
  require_folder_of(arguments.output);
  ProgressLine progress;
  request.plan.progress = [&](std::string_view schedule, std::size_t done, std::size_t most) {
    progress.show(done, most, schedule);
  };
  request.plan.stop = is_stopped;
  plan::PipelinePlan plan;
  try {
    plan = plan::plan_pipeline(request.subject.program, request.subject.hardware, request.plan);
  } catch (const std::invalid_argument& error) {
    throw InputError(arguments.subject, 0, error.what());
  }
  progress.clear();
  const plan::PipelineRow* written = write(arguments.output, request, plan);
  if (arguments.json) {
    Json json = to_json(request, plan);
    if (!arguments.output.empty()) json["written"] = nullptr;
    if (written) {
      json["written"] = {{"file", arguments.output.string()},
                         {"schedule", name(written->schedule)},
                         {"policy", written->policy}};
    }
    print_json(json);
  } else if (arguments.csv) {
    print_csv(to_json(request, plan)["rows"]);
  } else {
    print_text(to_table(request, plan));
    if (written) {
      print_text(fmt::format("written: {}, the plan of {}, {}\n", arguments.output.string(),
                             name(written->schedule), written->policy));
    }
  }
  if (plan.stopped) return told_stopped(fmt::format("{} rows", plan.rows.size()));
  return complain(plan);
}

}  // namespace ferry::cli
