// What a pipeline of a program needs and costs: rows of schedules and policies, each simulated.
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

#include "sim/plan/stop.h"
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
  std::size_t interleaved_each = 2;  // stages on a device, by the interleaved schedule
  StageBalance balance = StageBalance::kTime;
  std::vector<ScheduleKind> schedules;  // none: those that may be
  std::vector<std::string> policies;
  std::int64_t budget_bytes = 0;  // of each device, reserved
  sim::Optimizer optimizer = sim::Optimizer::kNoOptimizer;
  bool portals = true;
  bool check = true;
  std::function<void(std::string_view what, std::size_t done, std::size_t all)> progress;
  Stop stop;  // between runs
};

// The stages of a schedule.
struct PipelineCut {
  std::size_t stages_each = 1;
  StagedProgram staged;
  std::vector<std::int64_t> costs;  // by stage, in what they were balanced by
};

struct PipelineRow {
  ScheduleKind schedule = ScheduleKind::kGpipe;
  std::string policy;
  std::vector<sim::StagePolicy> stage_policies;
  std::size_t cut = 0;               // an index into the cuts
  std::int64_t closed_permille = 0;  // the bubble of stages that take equally long
  std::vector<std::size_t> alive;    // micro-batches of its stages that a device holds, at most
  sim::PipelineSimulation simulation;
  bool fits = false;  // each device, and the host
};

struct PipelinePlan {
  std::vector<PipelineCut> cuts;
  std::vector<PipelineRow> rows;
  bool stopped = false;               // these rows were ready by then
  std::vector<std::string> left_out;  // schedules that may not be, with the reason
};

// Throws std::invalid_argument where the program cannot be cut so, and where a schedule was asked
// for that may not be.
PipelinePlan plan_pipeline(const Program& program, const Hardware& hardware,
                           const PipelinePlanRequest& request);

}  // namespace ferry::plan
