// The memory and time of a program as a pipeline: rows of schedules and policies, each simulated.
//
// The stages are the program's units, balanced by time or by memory. A policy is the same for all
// stages, or found stage by stage: the search begins with everything kept and takes one stage
// further at a time, of the device that needs most, through keep and then the other policies, by
// what each costs where all stages have it. It ends at the first step of that way at which every
// device fits. The way does not depend on the budget, so a lower budget never yields a higher peak.
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

// Sorted as in the table. The last one is the search.
inline constexpr std::string_view kPipelinePolicies[] = {"keep", "checkpoint", "offload",
                                                         "per-stage"};

struct PipelinePlanRequest {
  std::uint32_t devices = 1;
  std::size_t microbatches = 1;
  std::size_t interleaved_each = 2;  // stages per device in the interleaved schedule
  StageBalance balance = StageBalance::kTime;
  std::vector<ScheduleKind> schedules;  // none: all that are possible
  std::vector<std::string> policies;
  std::int64_t budget_bytes = 0;  // reserved memory of each device
  sim::Optimizer optimizer = sim::Optimizer::kNoOptimizer;
  AllocConf alloc_conf;
  bool portals = true;
  bool check = true;
  std::function<void(std::string_view what, std::size_t done, std::size_t all)> progress;
  Stop stop;  // asked between runs
};

// The stages of a schedule.
struct PipelineCut {
  std::size_t stages_each = 1;
  StagedProgram staged;
  std::vector<std::size_t> units;   // by stage, how many it has
  std::vector<std::int64_t> costs;  // by stage, in the unit of the balance
};

struct PipelineRow {
  ScheduleKind schedule = ScheduleKind::kGpipe;
  std::string policy;
  std::vector<StagePolicy> stage_policies;
  std::size_t cut = 0;               // an index into the cuts
  std::int64_t closed_permille = 0;  // the bubble, if all stages took equally long
  std::vector<std::size_t> alive;    // the most micro-batches that a device holds at once
  sim::PipelineSimulation simulation;
  bool fits = false;  // each device fits, and the host
};

struct PipelinePlan {
  std::vector<PipelineCut> cuts;
  std::vector<PipelineRow> rows;
  bool stopped = false;               // stopped early: the rows are those ready by then
  std::vector<std::string> left_out;  // impossible schedules, with the reason
};

// Throws std::invalid_argument if the program cannot be cut so, and if a requested schedule is
// impossible.
PipelinePlan plan_pipeline(const Program& program, const Hardware& hardware,
                           const PipelinePlanRequest& request);

// The row whose plan is the one to carry out: the fastest of those that fit and, of these, the one
// that needs the least memory; where none fits, the one that needs the least memory. Null: there is
// none that is safe.
const PipelineRow* best_row(const PipelinePlan& plan);

StagedPlan to_plan(const Program& program, const Hardware& hardware,
                   const PipelinePlanRequest& request, const PipelinePlan& plan,
                   const PipelineRow& row);

}  // namespace ferry::plan
