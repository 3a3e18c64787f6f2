// The problem of a plan, and all candidates that were simulated for it, with their costs: whatever
// search asks, and for whatever budget, each is simulated once. What was tried for one budget is
// known for every other.
//
// A search that wants the fastest of many has most of them ruled out by their floors (floors.h).
// Which ones are simulated does not depend on the number of processors.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/program.h"
#include "plan/candidates.h"
#include "plan/floors.h"
#include "plan/picks.h"
#include "plan/stop.h"
#include "plan/survey.h"
#include "scenarios/hardware.h"
#include "scenarios/policy.h"
#include "sim/run/simulation.h"

namespace ferry::plan {

// The problem to plan: the program, cut at its segments.
struct Problem {
  const Program& whole;
  Program program;
  const Hardware& hardware;
  sim::Training training;
  Survey survey;
  bool spans = true;    // plans may have spans of operators,
  bool modules = true;  // and modules as segments
  AllocConf alloc_conf = {};
  std::optional<std::int64_t> workspace_bytes = {};
  sim::Time optimizer_ns = 0;  // of a step; whole trainings tell it
  Judged judged = Judged::kReserved;
  OffloadAll offload_all = OffloadAll::kTrl;
  // Of the two programs on the hardware; null: each run makes it.
  std::shared_ptr<const sim::Prepared> prepared_whole = nullptr;
  std::shared_ptr<const sim::Prepared> prepared_program = nullptr;

  const Survey& survey_of(const Candidate& candidate) const {
    return candidate.outlined ? candidate.outlined->survey : survey;
  }
  struct How {
    bool whole = false;             // all steps of the training; else those that are tried
    std::int64_t device_bytes = 0;  // capacity; 0: unlimited
    bool check = false;
    std::vector<StreamOpConsumer*> consumers = {};
    sim::StepTrace* trace = nullptr;
    sim::RunRecorder* recorder = nullptr;
    MemorySnapshot* memory = nullptr;
  };
  sim::Simulation run(const Candidate& candidate, const How& how) const;
  // So many steps are run of a candidate, and the last one judged: the third of a training is as
  // those that follow. 0, as in sim::Training: then what the optimizer takes is added.
  std::size_t tried_steps() const { return std::min(training.steps, sim::kSteadyStep); }
  bool is_training() const { return tried_steps() > 1; }
  Cost cost(const Candidate& candidate, std::int64_t device_bytes = 0) const {
    Cost cost = cost_of(run(candidate, {.device_bytes = device_bytes}), judged);
    if (tried_steps() == 0) cost.step_ns += optimizer_ns;
    return cost;
  }
};

struct Tried {
  Candidate candidate;
  Cost cost;                  // with unlimited memory,
  std::int64_t capacity = 0;  // or, if this is not 0, with so much
  bool done = false;          // not while it runs, nor if it was stopped
  // Its steps at capacities; none: it did not run.
  std::map<std::int64_t, std::optional<Cost>> at = {};

  // As the limits have it. What would reserve more than the budget may run at it, by giving back
  // what the pool has cached: then it needs no more than the largest capacity at which it was seen
  // to, and takes as long as there.
  Cost within(const Limits& limits) const;
};

class Trials {
 public:
  using Progress = std::function<void(std::string_view what, std::size_t done, std::size_t all)>;

  // The problem and the floors must outlive it.
  Trials(const Problem& problem, const Floors& floors, Progress progress, Stop stop)
      : problem_(problem),
        floors_(floors),
        progress_(std::move(progress)),
        stop_(std::move(stop)) {}

  // Throws Stopped, as does the next one; what was done by then is in all().
  std::vector<Cost> of(std::string_view what, const std::vector<Candidate>& candidates);
  struct Found {
    const Tried* tried;
    Cost cost;  // of `unlimited` with unlimited memory, else as the limits have it
  };
  std::vector<Found> unlimited(std::string_view what, const std::vector<Candidate>& candidates);
  // Those that would reserve more than the budget, and may be faster than all that are known, run
  // at the budget's capacity as well.
  std::vector<Found> within(std::string_view what, const std::vector<Candidate>& candidates,
                            const Limits& limits);
  // Where it is known that something fits, they run at the budget's capacity alone: half the work,
  // but of what does not run there nothing is learned, nor what the others take where there is
  // more. Else as `within`.
  std::vector<Found> at_budget(std::string_view what, const std::vector<Candidate>& candidates,
                               const Limits& limits);
  // The candidate that pick_fastest would pick of the costs of all.
  std::size_t fastest(std::string_view what, const std::vector<Candidate>& candidates,
                      const Limits& limits);
  // Tries those that could be picked before what all() has; where nothing fits, or not `all_of`
  // them are asked for, until many in a row are no better. `floors`: theirs for any budget.
  void try_better(std::string_view what, const std::vector<Candidate>& candidates,
                  const std::vector<Floor>& floors, const Limits& limits, bool all_of = true);

  Floor floor(const Candidate& candidate, const Limits& limits) const {
    return floors_.of(candidate, problem_.survey_of(candidate), limits.budget_bytes);
  }
  std::vector<Floor> floors_for_any_budget(const std::vector<Candidate>& candidates) const;
  // Equal for equal candidates.
  std::string key(const Candidate& candidate) const;
  // In the order in which they were first asked for.
  const std::deque<Tried>& all() const { return tried_; }
  // The one of them that pick_fastest would pick of those whose plan the core can carry out; null:
  // there is none.
  const Tried* best(const Limits& limits) const;
  // Its cost as the limits have it; none: nothing that fits is known.
  std::optional<Cost> fitting(const Limits& limits) const;

 private:
  // Those of the candidates that were simulated, by number. `best`: known before; null: nothing.
  std::map<std::size_t, Cost> sieve(std::string_view what, const std::vector<Candidate>& candidates,
                                    const Limits& limits, const Cost* best, bool all_of);
  Tried* known(const Candidate& candidate);
  static std::vector<Found> found(const std::vector<Tried*>& all, const Limits& limits);
  // Some candidates of `whole`, of which so many came `before`.
  std::vector<Tried*> some_of(std::string_view what, const std::vector<Candidate>& candidates,
                              std::size_t before, std::size_t whole);
  void run_at(std::string_view what, const std::vector<Tried*>& trials, std::int64_t capacity);
  using Run = std::function<void(Tried&)>;
  void simulate(std::string_view what, const std::vector<Tried*>& trials, std::size_t before,
                std::size_t whole, const Run& run) const;

  const Problem& problem_;
  const Floors& floors_;
  const Progress progress_;
  const Stop stop_;
  std::deque<Tried> tried_;
  std::map<std::string, Tried*> known_;  // by key
};

}  // namespace ferry::plan
