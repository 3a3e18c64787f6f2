// The planner's entry: plans each requested policy for a program, a card and a budget, and writes a
// plan. README.md in this folder describes the search.
//
// Every row was simulated as a whole training, and checked for hazards unless that is switched off.
// A row fits if its training runs on a device with the budget's capacity (capacity.h). A row whose
// run has errors, or that reserves more than keeping everything, is not an answer, and a search
// does not choose it if it has another candidate.
//
// A search judges a candidate by the third step of the training, because later steps are like it,
// or by its only step. It simulates with unlimited memory or at the budget's capacity. Only `best`
// has candidates that depend on the budget; the other policies have fixed lists (policies.h). Of
// the candidates that may fit, the fastest whose whole training runs is chosen.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/plan.h"
#include "formats/plan_options.h"
#include "plan/candidates.h"
#include "plan/capacity.h"
#include "plan/lower_bound.h"
#include "plan/mix.h"
#include "plan/picks.h"
#include "plan/stop.h"
#include "plan/survey.h"
#include "scenarios/hardware.h"
#include "scenarios/policy.h"
#include "sim/run/simulation.h"

namespace ferry::plan {

struct PlanRequest {
  std::int64_t budget_bytes = 0;  // the device's capacity: what its allocator may reserve
  Judged judged = Judged::kReserved;
  std::vector<Policy> policies;
  // A row simulates the whole training; a search simulates at most three steps of it.
  sim::Training training;
  std::optional<std::int64_t> workspace_bytes;  // CUBLAS_WORKSPACE_CONFIG; no value: the card's
  AllocConf alloc_conf;
  // If `best` is far from the bound, plan it with expandable segments too: most of the distance is
  // fragments.
  bool expandable_too = false;
  OffloadAll offload_all = OffloadAll::kTrl;
  bool check = true;
  bool spans = true;  // spans of operators may be recomputed
  // Modules may be segments. False: only calls of checkpoint, for users who do not edit the model.
  bool modules = true;
  // They receive the final run of each policy, not the runs of a search.
  std::vector<StreamOpConsumer*> consumers;
  sim::StepTrace* trace = nullptr;  // receives the final run; for a single policy. May be null
  // Returns the recorder for the final run of a policy. May be empty.
  std::function<sim::RunRecorder*(Policy)> recorder;
  MemorySnapshot* memory = nullptr;  // receives the final run; for a single policy. May be null
  std::function<void(std::string_view what, std::size_t done, std::size_t all)> progress;
  Stop stop;
};

// The name of the row of `best` with expandable segments, if the request has the default allocator.
inline constexpr const char* kBestExpandable = "best-expandable";

struct PolicyRow {
  std::string policy;           // the policy's name
  std::string alloc_conf = {};  // the allocator's options, as formats/alloc_conf.h writes them
  Candidate candidate;
  // The final run: with unlimited memory, or at the budget's capacity if it fits only because the
  // allocator frees its cache.
  sim::Simulation simulation;
  bool fits = false;              // it ran within the budget, and fits the host
  std::int64_t device_bytes = 0;  // the capacity of the final run; 0: unlimited
  bool useless = false;           // reserves more than keeping everything, and runs in no less
  std::int64_t least_bytes = 0;   // the smallest capacity at which it ran; 0: it never ran
  std::string refusal;            // why it does not fit, in PyTorch's words; empty: it fits

  // True if there is no hazard, no error, and nothing left over at the end.
  bool is_safe() const {
    return simulation.hazards.empty() && simulation.errors.empty() && !simulation.leftovers.any();
  }
  // True if it answers the request: it fits, it is safe, and it saves memory.
  bool is_answer() const { return fits && !useless && is_safe(); }
  // True if the core can carry out its plan.
  bool has_plan() const { return !candidate.trl; }
};

// Makes a row. `run` is the run at the capacity `device_bytes`. `keep_bytes` are the judged bytes
// (reserved or allocated) of keeping everything with unlimited memory; kUnlimited: keep fails.
PolicyRow row_of(std::string policy, Candidate candidate, sim::Simulation run,
                 std::int64_t device_bytes, Verdict verdict, std::int64_t keep_bytes);

struct PlanResult {
  std::vector<PolicyRow> rows;
  bool stopped = false;  // stopped early; the rows are those ready by then
  // The step time of keeping everything with unlimited memory: the base of slowdowns.
  sim::Time keep_ns = 0;
  std::int64_t keep_bytes = 0;         // reserved if everything is kept
  std::int64_t keep_judged_bytes = 0;  // its judged bytes; kUnlimited: it fails
  // The bound for all plans within the budget that the core can carry out; no value: keep fails.
  std::optional<Certificate> certificate;
  Survey survey;
  std::vector<std::string> segments;  // the segments' names
};

// Returns the program with segments. A program with checkpoints has its own segments. Otherwise the
// modules that repeat become segments, except those that cannot be outlined. Without `modules`,
// only calls of checkpoint become segments. A program without any is returned unchanged.
Program with_segments(const Program& program, bool modules = true);
bool has_segments(const Program& program, bool modules = true);
// Returns the program with the plan's segments if they are modules of the program; else as above.
Program with_segments(const Program& program, const Plan& plan);
// Returns the survey that the plan's entries refer to. `program` must have the plan's segments.
// Throws std::invalid_argument if the program does not have the operators of the plan's spans.
Survey survey(const Program& program, const Hardware& hardware, const Plan& plan);
// The error for a program without segments.
inline constexpr const char* kNoSegments =
    "the program has neither checkpoints nor modules that repeat";

// The error if a policy chooses operators and the program has none to choose (span_model.h).
inline constexpr const char* kNoOperators =
    "the program's forward calls other code, or has checkpoints of its own";

// Plans each policy of the request. Throws std::invalid_argument for a policy that needs segments,
// or operators, if there are none.
PlanResult plan(const Program& program, const Hardware& hardware, const PlanRequest& request);

// Returns the row whose plan to carry out: the only row, if there is one. Otherwise the fastest
// answer, and of equally fast ones the one with less memory; without an answer, the row with the
// least memory. Null: no row has a safe plan.
const PolicyRow* best_row(const PlanResult& result);

// Returns the step time divided by that of keep, in thousandths, rounded up.
std::int64_t slowdown_permille(sim::Time step_ns, sim::Time keep_ns);

Plan to_plan(const Program& program, const Hardware& hardware, const PlanResult& result,
             const PolicyRow& row);

}  // namespace ferry::plan
