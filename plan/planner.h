// Policies, and the search for the cheapest one that fits a budget.
//
// The simulator is the judge: every row was simulated, and checked unless that was switched off. It
// fits where its training runs on a device of the budget's capacity (capacity.h). A run with
// errors, and one that reserves more than keeping everything does, is no candidate of a search, and
// a row of that kind no answer.
// What a search tries is a training's third step, for those that follow are like it, or the one
// step that there is, with unlimited memory or at the budget's capacity. The candidates of a
// search, other than best's, are a fixed list that does not depend on the budget (policies.h). Of
// those that may fit, the fastest whose training runs is taken.
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
  std::int64_t budget_bytes = 0;  // the device's capacity: what its memory pool may reserve
  Judged judged = Judged::kReserved;
  std::vector<Policy> policies;
  // Rows are whole trainings; a search tries three steps of them, or those that there are.
  sim::Training training;
  std::optional<std::int64_t> workspace_bytes;  // of CUBLAS_WORKSPACE_CONFIG; none: the card's
  AllocConf alloc_conf;
  // Where `best` is far from the bound under the usual allocator, it is planned under expandable
  // segments as well: for fragments are most of what it is far from it.
  bool expandable_too = false;
  OffloadAll offload_all = OffloadAll::kTrl;
  bool check = true;
  bool spans = true;  // spans of operators may be recomputed
  // Modules may be recomputed; false: only calls of checkpoint, as where nobody edits the model.
  bool modules = true;
  // They see each policy's own run, not the runs that a search tries.
  std::vector<StreamOpConsumer*> consumers;
  sim::StepTrace* trace = nullptr;  // of the one policy; null: none
  // Asked for each policy's own run, which it records; null: nobody does.
  std::function<sim::RunRecorder*(Policy)> recorder;
  MemorySnapshot* memory = nullptr;  // of the one policy's run; null: none
  std::function<void(std::string_view what, std::size_t done, std::size_t all)> progress;
  Stop stop;
};

// The row of `best` under expandable segments, in a plan of the usual allocator.
inline constexpr const char* kBestExpandable = "best-expandable";

struct PolicyRow {
  std::string policy;           // its name
  std::string alloc_conf = {};  // the allocator's options, as formats/alloc_conf.h writes them
  Candidate candidate;
  // With unlimited memory, but where it fits only because the pool gives its cache back: then with
  // the budget's.
  sim::Simulation simulation;
  bool fits = false;              // it ran within the budget, and fits the host
  std::int64_t device_bytes = 0;  // the capacity that its figures are of; 0: unlimited
  bool useless = false;           // it reserves more memory than keeping everything
  std::int64_t least_bytes = 0;   // the least capacity that it was seen to run at; 0: none was
  std::string refusal;            // why it does not fit, in PyTorch's words; empty: it does

  // True if there is no hazard, no error, and nothing left.
  bool is_safe() const {
    return simulation.hazards.empty() && simulation.errors.empty() && !simulation.leftovers.any();
  }
  // True if it answers the request: it fits, and it is worth it.
  bool is_answer() const { return fits && !useless && is_safe(); }
  // True if the core can carry out its plan.
  bool has_plan() const { return !candidate.trl; }
};

// `run`: at the capacity `device_bytes`, as judged. `keep_bytes`: what keeping everything reserves
// with unlimited memory, or allocates, whichever is judged; kUnlimited: it fails.
PolicyRow row_of(std::string policy, Candidate candidate, sim::Simulation run,
                 std::int64_t device_bytes, Verdict verdict, std::int64_t keep_bytes);

struct PlanResult {
  std::vector<PolicyRow> rows;
  bool stopped = false;  // stopped early: the rows are those ready by then
  // The time of keeping everything with unlimited memory: the base of
  // slowdowns.
  sim::Time keep_ns = 0;
  std::int64_t keep_bytes = 0;         // reserved when everything is kept
  std::int64_t keep_judged_bytes = 0;  // what is judged of it; kUnlimited: it fails
  // Of all that the core can carry out within the budget; none: keeping everything fails.
  std::optional<Certificate> certificate;
  Survey survey;
  std::vector<std::string> segments;  // the segments' names
};

// If a program has checkpoints of its own, they are its segments; else its repeated modules become
// checkpoints, except those that cannot be outlined. Other programs stay as they were, and without
// `modules` those that call no checkpoint.
Program with_segments(const Program& program, bool modules = true);
bool has_segments(const Program& program, bool modules = true);
// The segments that the plan is of: its own, if they are modules of the program; else those above.
Program with_segments(const Program& program, const Plan& plan);
// What the plan's entries are of; `program` has the segments that the plan is of. Throws
// std::invalid_argument if it has other operators than the plan's spans.
Survey survey(const Program& program, const Hardware& hardware, const Plan& plan);
// The error for a program without segments.
inline constexpr const char* kNoSegments =
    "the program has neither checkpoints nor modules that repeat";

// The error where a policy chooses operators and the program has none to choose (span_model.h).
inline constexpr const char* kNoOperators =
    "the program's forward calls other code, or has checkpoints of its own";

// Throws std::invalid_argument for an unknown policy, and for one that needs segments if there are
// none.
PlanResult plan(const Program& program, const Hardware& hardware, const PlanRequest& request);

// The row whose plan to carry out: if one policy was asked for, that one's. Else the fastest of the
// answers, and of equally fast ones the one with the least memory; if there is no answer, the row
// with the least memory. Null: no row has a safe plan.
const PolicyRow* best_row(const PlanResult& result);

// Step time relative to keep's, in thousandths, rounded up.
std::int64_t slowdown_permille(sim::Time step_ns, sim::Time keep_ns);

Plan to_plan(const Program& program, const Hardware& hardware, const PlanResult& result,
             const PolicyRow& row);

}  // namespace ferry::plan
