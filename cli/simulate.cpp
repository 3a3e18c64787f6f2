// `ferry simulate`: runs a program under policies, or under a plan that `ferry plan` wrote.
#include <spdlog/spdlog.h>
#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "cli/context.h"
#include "cli/policies.h"
#include "cli/progress.h"
#include "cli/stop.h"
#include "formats/atomic_file.h"
#include "formats/error.h"
#include "formats/plan_file.h"
#include "formats/program_file.h"
#include "formats/trace_write.h"
#include "sim/gpu/step_trace.h"
#include "sim/gpu/stream_log.h"
#include "sim/plan/planner.h"
#include "sim/run/simulation.h"

namespace ferry::cli {
namespace {

plan::PlanResult run_plan(const PolicyArguments& arguments, const PolicyRequest& request) {
  const std::string file = arguments.plan.string();
  const Plan plan = read_plan(arguments.plan);
  const std::string digest = ferry::digest(request.program);
  if (plan.program_digest != digest) {
    throw InputError(file, 0,
                     "this plan is for program " + plan.program + " with digest " +
                         plan.program_digest + ", not for " + request.program_name + " (" + digest +
                         "); --microbatches and --order are part of a program");
  }
  if (plan.hardware != request.hardware.name) {
    spdlog::warn("{}: made for {}, run on {}", file, plan.hardware, request.hardware.name);
  }
  plan::PlanRequest keep = request.plan;
  keep.policies = {Policy::kKeep};
  keep.consumers = {};
  keep.trace = nullptr;
  keep.memory = nullptr;
  keep.check = false;
  plan::PlanResult result = plan::plan(request.program, request.hardware, keep);
  if (result.stopped) return result;
  Program program;
  std::string mismatch;
  sim::SimulationOptions options;
  try {
    program = plan::with_segments(request.program, plan);
    options.offload = to_options(plan);
    mismatch = plan::plan_mismatch(plan::survey(program, request.hardware, plan), plan);
  } catch (const std::invalid_argument& error) {
    throw InputError(file, 0, error.what());
  }
  if (!mismatch.empty()) throw InputError(file, 0, mismatch);
  if (!plan.segments.empty()) result.segments.assign(plan.segments.size(), "");
  options.training = request.plan.training;
  options.workspace_bytes = request.plan.workspace_bytes;
  options.alloc_conf = request.plan.alloc_conf;
  options.check = false;
  options.segments = planned_segments(plan);
  options.spans = plan.spans;
  plan::StopsRun stops(is_stopped);
  options.consumers = {&stops};
  const auto run = [&](std::int64_t device_bytes) {
    options.device_bytes = device_bytes;
    return sim::simulate(program, request.hardware, options);
  };
  plan::Candidate candidate;
  candidate.options = options.offload;
  result.rows.clear();
  try {
    const plan::Limits limits{request.plan.budget_bytes, request.hardware.host_memory_bytes,
                              result.keep_bytes};
    plan::Verdict verdict = plan::judge(run, limits, request.plan.judged);
    options.check = request.plan.check;
    options.consumers.insert(options.consumers.begin(), request.plan.consumers.begin(),
                             request.plan.consumers.end());
    options.trace = request.plan.trace;
    options.memory = request.plan.memory;
    const std::int64_t device_bytes = verdict.device_bytes(limits);
    sim::Simulation shown = run(device_bytes);
    result.rows = {plan::row_of(plan.policy, std::move(candidate), std::move(shown), device_bytes,
                                std::move(verdict), result.keep_judged_bytes)};
  } catch (const plan::Stopped&) {
    result.stopped = true;
  }
  return result;
}

plan::PlanResult simulate(const PolicyArguments& arguments, const PolicyRequest& request) {
  return arguments.plan.empty() ? plan::plan(request.program, request.hardware, request.plan)
                                : run_plan(arguments, request);
}

// Writes of one run what there is a file for: two runs would use the same streams, at the same
// addresses.
plan::PlanResult simulate_and_write(const PolicyArguments& arguments, PolicyRequest request) {
  for (const auto& [option, path] : {std::pair("--log", &arguments.log),
                                     {"--trace", &arguments.trace},
                                     {"--snapshot", &arguments.snapshot}}) {
    if (path->empty()) continue;
    if (arguments.plan.empty() && request.plan.policies.size() != 1) {
      throw InputError(option, 0,
                       "expected with --plan or one --policy: it is of one run, and here are " +
                           std::to_string(request.plan.policies.size()));
    }
    require_folder_of(*path);
  }
  std::optional<TraceFile> file;
  std::optional<sim::StreamLog> log;
  std::optional<sim::StepTrace> trace;
  if (!arguments.log.empty()) {
    request.plan.consumers = {&log.emplace(file.emplace(arguments.log))};
  }
  if (!arguments.trace.empty()) request.plan.trace = &trace.emplace(arguments.trace);
  MemorySnapshot memory;
  if (!arguments.snapshot.empty()) request.plan.memory = &memory;
  plan::PlanResult result = simulate(arguments, request);
  if (result.stopped) return result;  // half a file is not written
  if (file) file->commit();
  if (trace) trace->commit();
  if (!arguments.snapshot.empty()) write_memory_snapshot(arguments.snapshot, memory);
  return result;
}

int run(const PolicyArguments& arguments) {
  PolicyRequest request = understand(arguments);
  ProgressLine progress;
  request.plan.progress = [&](std::string_view policy, std::size_t done, std::size_t all) {
    progress.show(done, all, policy);
  };
  request.plan.stop = is_stopped;
  const plan::PlanResult result = simulate_and_write(arguments, request);
  progress.clear();
  return report(arguments, request, result);
}

}  // namespace

void add_simulate(CLI::App& app, Context& context) {
  const auto arguments = std::make_shared<PolicyArguments>();
  CLI::App* command = app.add_subcommand("simulate", "Run a step on a simulated card, checked");
  command->group("Plan and simulate");
  command->footer(R"(
Examples:
  ferry simulate gpt2 --hardware rtx4090 --policy offload   one policy, checked
  ferry simulate gpt2 --hardware rtx4090 --plan gpt2.plan   a plan that `ferry plan` wrote
  ferry simulate gpt2 --hardware rtx4090 --policy offload --log run.jsonl   and its streams
  ferry simulate gpt2 --hardware rtx4090 --policy keep --snapshot run.pickle   and its memory)");
  add_policy_options(*command, *arguments, context);
  command->add_option("--plan", arguments->plan, "Run this plan instead of a policy")
      ->type_name("FILE")
      ->excludes("--policy");
  command->add_option("--log", arguments->log, "Write the run's streams here, for `ferry check`")
      ->type_name("FILE");
  command
      ->add_option("--trace", arguments->trace,
                   "Write what the run's streams did and when here, for ui.perfetto.dev")
      ->type_name("FILE");
  command
      ->add_option("--snapshot", arguments->snapshot,
                   "Write the device's memory here, as PyTorch's memory snapshots have it")
      ->type_name("FILE");
  command->callback([arguments, &context] {
    listen_for_stop();
    context.exit_code = static_cast<ExitCode>(run(*arguments));
  });
}

}  // namespace ferry::cli
