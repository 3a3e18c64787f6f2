#include "cli/plan_run.h"

#include <stdexcept>
#include <string>
#include <utility>

#include "cli/console/messages.h"
#include "cli/console/stop.h"
#include "formats/error.h"
#include "formats/plan_file.h"
#include "formats/program_file.h"
#include "sim/run/simulation.h"

namespace ferry::cli {
namespace {

void check_made_for(const Plan& plan, const std::string& file, const PolicyRequest& request) {
  const std::string digest = ferry::digest(request.program);
  if (plan.program_digest != digest) {
    throw InputError(file, 0,
                     "this plan is for program " + plan.program + " with digest " +
                         plan.program_digest + ", not for " + request.program_name + " (" + digest +
                         "); --microbatches and --schedule change the digest");
  }
  if (plan.hardware != request.hardware.name) {
    tell("{}: made for {}, run on {}", file, plan.hardware, request.hardware.name);
  }
}

// Returns the allocator options that the plan was made for, unless the user asks for others.
AllocConf conf_of(const Plan& plan, const std::string& file, const AllocConf& asked) {
  const std::string given = to_string(asked);
  if (given == plan.alloc_conf) return asked;
  if (!given.empty()) {
    tell("{}: made for the allocator's options \"{}\", run with \"{}\"", file, plan.alloc_conf,
         given);
    return asked;
  }
  AllocConf conf = parse_alloc_conf(plan.alloc_conf, file);
  conf.segments_go_up = asked.segments_go_up;
  conf.equal_blocks = asked.equal_blocks;
  conf.keeps_workspaces = asked.keeps_workspaces;
  return conf;
}

}  // namespace

plan::PlanResult run_plan(const std::filesystem::path& path, const PolicyRequest& request) {
  const std::string file = path.string();
  const Plan plan = read_plan(path);
  check_made_for(plan, file, request);
  const AllocConf conf = conf_of(plan, file, request.plan.alloc_conf);
  plan::PlanRequest keep = request.plan;
  keep.alloc_conf = conf;
  keep.policies = {Policy::kKeep};
  keep.consumers = {};
  keep.trace = nullptr;
  keep.memory = nullptr;
  keep.recorder = nullptr;
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
  options.alloc_conf = conf;
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
    if (request.plan.recorder) options.recorder = request.plan.recorder(Policy::kKeep);
    const std::int64_t device_bytes = verdict.device_bytes(limits);
    sim::Simulation shown = run(device_bytes);
    result.rows = {plan::row_of(plan.policy, std::move(candidate), std::move(shown), device_bytes,
                                std::move(verdict), result.keep_judged_bytes)};
    result.rows.front().alloc_conf = to_string(conf);
  } catch (const plan::Stopped&) {
    result.stopped = true;
  }
  return result;
}

}  // namespace ferry::cli
