// Plans a program as a pipeline, for `ferry plan --stages`. Each schedule and policy gives one row
// of the table, which is one simulated step.
//
// The program's units are divided into stages, balanced by time or by memory. A policy applies to
// all stages, or is found stage by stage (`per-stage`). This search is greedy and may miss the
// fastest plan. It orders the policies by the step time that each has if all stages use it, with
// keep first. It begins with keep everywhere. Until the plan fits, one stage of the device that
// needs most takes the next policy. The order of these steps does not depend on the budget, so a
// smaller budget never gives a higher peak.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/staged_plan.h"
#include "plan/stop.h"
#include "sim/run/pipeline_simulation.h"

namespace ferry::plan {

enum class StageBalance : std::uint8_t { kTime, kMemory };
inline constexpr std::string_view kStageBalanceNames[] = {"time", "memory"};

// In the order of the table. The last one is the search.
inline constexpr std::string_view kPipelinePolicies[] = {"keep", "checkpoint", "offload",
                                                         "per-stage"};

struct PipelinePlanRequest {
  std::uint32_t devices = 1;
  std::size_t microbatches = 1;
  std::size_t interleaved_each = 2;  // stages per device in the interleaved schedule
  StageBalance balance = StageBalance::kTime;
  std::vector<ScheduleKind> schedules;  // empty: all that are possible
  std::vector<std::string> policies;
  std::int64_t budget_bytes = 0;  // reserved memory of each device
  sim::Optimizer optimizer = sim::Optimizer::kNoOptimizer;
  AllocConf alloc_conf;
  bool portals = true;
  bool check = true;
  std::function<void(std::string_view what, std::size_t done, std::size_t all)> progress;
  Stop stop;  // called between simulations
};

// A program cut into stages.
struct PipelineCut {
  std::size_t stages_each = 1;  // stages per device
  StagedProgram staged;
  std::vector<std::size_t> units;   // by stage: its number of units
  std::vector<std::int64_t> costs;  // by stage: ns or bytes, as the balance has it
};

struct PipelineRow {
  ScheduleKind schedule = ScheduleKind::kGpipe;
  std::string policy;
  std::vector<StagePolicy> stage_policies;
  std::size_t cut = 0;               // an index into the cuts
  std::int64_t closed_permille = 0;  // the pipeline bubble if all stages took equally long
  std::vector<std::size_t> alive;    // the most micro-batches that a device holds at once
  sim::PipelineSimulation simulation;
  bool fits = false;  // it fits each device and the host
};

struct PipelinePlan {
  std::vector<PipelineCut> cuts;
  std::vector<PipelineRow> rows;
  bool stopped = false;               // stopped early; the rows are those ready by then
  std::vector<std::string> left_out;  // impossible schedules, with the reason
};

// Throws std::invalid_argument if a policy is unknown, if the program cannot be cut into that many
// stages, or if a schedule is impossible. If the request names no schedules, an impossible
// interleaved schedule is no error: it is in `left_out`.
PipelinePlan plan_pipeline(const Program& program, const Hardware& hardware,
                           const PipelinePlanRequest& request);

// Returns the row whose plan to carry out: the fastest that fits, and of equally fast ones the one
// with less memory; if none fits, the one with the least memory. Null: no row is safe.
const PipelineRow* best_row(const PipelinePlan& plan);

StagedPlan to_plan(const Program& program, const Hardware& hardware,
                   const PipelinePlanRequest& request, const PipelinePlan& plan,
                   const PipelineRow& row);

}  // namespace ferry::plan
