// `ferry simulate`: runs a program under policies (plan/planner.h), or under a plan that `ferry
// plan` wrote (cli/plan_run.h), and prints the rows. It can also write the stream log, the trace
// and the memory snapshot of the run.
//
// Each of these files describes one run. So --log, --trace and --snapshot throw InputError unless
// there is --plan or exactly one policy. A simulation that is stopped writes none of them.
//
// It writes no plan, and plans no pipeline and no curve: `ferry plan` does (cli/plan.cpp).
#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "cli/commands.h"
#include "cli/console/first_options.h"
#include "cli/console/messages.h"
#include "cli/console/progress.h"
#include "cli/console/stop.h"
#include "cli/peak_owners.h"
#include "cli/plan_run.h"
#include "cli/policies.h"
#include "cli/rows.h"
#include "formats/atomic_file.h"
#include "formats/error.h"
#include "formats/stream_log_write.h"
#include "plan/planner.h"
#include "sim/gpu/step_trace.h"
#include "sim/gpu/stream_log.h"

namespace ferry::cli {
namespace {

plan::PlanResult simulate(const PolicyArguments& arguments, const PolicyRequest& request) {
  return arguments.plan.empty() ? plan::plan(request.program, request.hardware, request.plan)
                                : run_plan(arguments.plan, request);
}

// Simulates, and writes the requested files (log, trace, snapshot). A file describes one run,
// because two runs would use the same streams and addresses.
plan::PlanResult simulate_and_write(const PolicyArguments& arguments, PolicyRequest request) {
  for (const auto& [option, path] : {std::pair("--log", &arguments.log),
                                     {"--trace", &arguments.trace},
                                     {"--snapshot", &arguments.snapshot}}) {
    if (path->empty()) continue;
    if (arguments.plan.empty() && request.plan.policies.size() != 1) {
      throw InputError(option, 0,
                       "expected with --plan or one --policy: it describes one run, not " +
                           std::to_string(request.plan.policies.size()));
    }
    require_folder_of(*path);
  }
  std::optional<StreamLogFile> file;
  std::optional<sim::StreamLog> log;
  std::optional<sim::StepTrace> trace;
  if (!arguments.log.empty()) {
    request.plan.consumers = {&log.emplace(file.emplace(arguments.log))};
  }
  if (!arguments.trace.empty()) request.plan.trace = &trace.emplace(arguments.trace);
  MemorySnapshot memory;
  if (!arguments.snapshot.empty()) request.plan.memory = &memory;
  plan::PlanResult result = simulate(arguments, request);
  if (result.stopped) return result;  // no incomplete file is written
  if (file) file->commit();
  if (trace) trace->commit();
  if (!arguments.snapshot.empty()) write_memory_snapshot(arguments.snapshot, memory);
  return result;
}

int print_simulation(const PolicyArguments& arguments) {
  PolicyRequest request = understand(arguments);
  PeakRecorders peaks(request);
  ProgressLine progress;
  request.plan.progress = [&](std::string_view policy, std::size_t done, std::size_t all) {
    progress.show(done, all, policy);
  };
  request.plan.stop = is_stopped;
  const plan::PlanResult result = simulate_and_write(arguments, request);
  progress.clear();
  return report(arguments, request, result, Answers::kNo);
}

}  // namespace

void add_simulate(CLI::App& app, Context& context) {
  const auto arguments = std::make_shared<PolicyArguments>();
  CLI::App* command = app.add_subcommand("simulate", "Simulate and check a training step");
  command->group("Plan and simulate");
  command->footer(R"(
Examples:
  ferry simulate gpt2 --card rtx4090 --policy offload   one policy, checked
  ferry simulate gpt2 --card rtx4090 --plan gpt2.plan   a plan that `ferry plan` wrote
  ferry simulate gpt2 --card rtx4090 --policy offload --log run.jsonl   write its stream log
  ferry simulate gpt2 --card rtx4090 --policy keep --snapshot run.pickle   write its memory)");
  add_policy_options(*command, *arguments, context);
  command->add_option("--plan", arguments->plan, "Simulate this plan instead of policies")
      ->type_name("FILE")
      ->excludes("--policy");
  command->add_option("--log", arguments->log, "Write the run's stream log, for `ferry check`")
      ->type_name("FILE");
  command
      ->add_option("--trace", arguments->trace,
                   "Write what each stream did and when, for ui.perfetto.dev")
      ->type_name("FILE");
  command
      ->add_option("--snapshot", arguments->snapshot,
                   "Write the device's memory in the format of PyTorch's memory snapshots")
      ->type_name("FILE");
  list_first(
      *command, context,
      {"--card", "--budget", "--policy", "--plan", "--optimizer", "--optimizer-implementation",
       "--microbatches", "--alloc-conf", "--times", "--json", "--log", "--trace", "--snapshot"});
  command->callback([arguments, &context] {
    listen_for_stop();
    context.exit_code = static_cast<ExitCode>(print_simulation(*arguments));
  });
}

}  // namespace ferry::cli
