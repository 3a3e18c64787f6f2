// Simulates a step with a mix, and counts what its plan's entries say.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "formats/plan.h"
#include "plan/mix.h"
#include "plan/survey.h"
#include "shared/seam/options.h"
#include "sim/run/simulation.h"

namespace ferry::test {

struct MixedRun {
  sim::Simulation simulation;
  std::vector<Decision> decisions;
};

inline MixedRun run_mix(const Program& program, const Hardware& hardware,
                        const plan::Survey& survey, const plan::Mix& mix, CoreOptions offload) {
  MixedRun run;
  offload.offload = plan::offload_choices(survey, mix);
  offload.log = [&run](const Decision& decision) { run.decisions.push_back(decision); };
  sim::SimulationOptions options;
  options.offload = std::move(offload);
  options.segments = plan::segment_plan(survey, mix);
  run.simulation = sim::simulate(program, hardware, options);
  return run;
}

// The counts that the core and the checkpointer should report for a plan's entries.
struct Counts {
  std::int64_t packs = 0;  // saved tensors that the offloader sees
  std::int64_t moved = 0;  // of these, the offloaded ones
  std::int64_t recomputed = 0;
  std::int64_t kept = 0;       // inside segments
  std::int64_t passed_on = 0;  // from segments to the offloader
  bool operator==(const Counts&) const = default;
};

inline Counts counts_of(const std::vector<PlanEntry>& entries) {
  Counts counts;
  for (const PlanEntry& entry : entries) {
    const bool moves = entry.decision == PlanChoice::kOffload;
    counts.packs += !entry.segment || moves;
    counts.moved += moves;
    counts.recomputed += entry.decision == PlanChoice::kRecompute;
    counts.kept += entry.segment && entry.decision == PlanChoice::kKeep;
    counts.passed_on += entry.segment && moves;
  }
  return counts;
}
inline Counts counts_of(const sim::Simulation& run) {
  return {run.statistics.packs, run.statistics.packs - run.statistics.kept, run.checkpoints.saved,
          run.checkpoints.kept, run.checkpoints.passed_on};
}

}  // namespace ferry::test
