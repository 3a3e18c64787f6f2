// The planning problem, and a store of all candidates that were simulated for it, with their costs.
// Each candidate is simulated only once with unlimited memory, and once at each capacity: all
// searches and all budgets share the store.
//
// When a search wants the fastest of many candidates, floors (floors.h) rule out most of them.
// Simulations use all processors. Which candidates are simulated does not depend on the number of
// processors.
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

// The planning problem: the program, the card, the training and the allocator.
struct Problem {
  const Program& whole;  // as given
  Program program;       // with its segments as calls
  const Hardware& hardware;
  sim::Training training;
  Survey survey;
  bool spans = true;  // plans may have spans of operators
  AllocConf alloc_conf = {};
  std::optional<std::int64_t> workspace_bytes = {};
  sim::Time optimizer_ns = 0;  // the optimizer's time in a step, known from a whole training
  Judged judged = Judged::kReserved;
  OffloadAll offload_all = OffloadAll::kTrl;
  // The two programs, prepared for the hardware; null: each run prepares its program.
  std::shared_ptr<const sim::Prepared> prepared_whole = nullptr;
  std::shared_ptr<const sim::Prepared> prepared_program = nullptr;

  const Survey& survey_of(const Candidate& candidate) const {
    return candidate.spanned ? candidate.spanned->survey : survey;
  }
  struct How {
    bool whole = false;             // true: all steps of the training; false: tried_steps()
    std::int64_t device_bytes = 0;  // the device's capacity; 0: unlimited
    bool check = false;
    std::vector<StreamOpConsumer*> consumers = {};
    sim::StepTrace* trace = nullptr;
    sim::RunRecorder* recorder = nullptr;
    MemorySnapshot* memory = nullptr;
  };
  sim::Simulation run(const Candidate& candidate, const How& how) const;
  // The number of steps that are simulated for a candidate; the last one is judged. The third step
  // of a training is like all later ones. 0, as in sim::Training, is one step without an optimizer;
  // `cost` then adds optimizer_ns.
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
  Cost cost;                  // at `capacity`
  std::int64_t capacity = 0;  // 0: unlimited
  bool done = false;          // `cost` is known; false while it runs, and if it was stopped
  // Costs at capacities; no value: it does not run there.
  std::map<std::int64_t, std::optional<Cost>> at = {};

  // Returns the cost under these limits. A candidate that would reserve more than the budget may
  // still run there, if the allocator frees its cache. Then the cost is that at the largest known
  // capacity within the budget, and this capacity counts as its reserved memory.
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

  // Simulates the candidates with unlimited memory. `what` is the text for the progress callback.
  // All functions that simulate throw Stopped; what was done by then is in all().
  std::vector<Cost> of(std::string_view what, const std::vector<Candidate>& candidates);
  struct Found {
    const Tried* tried;
    Cost cost;  // from `unlimited`: with unlimited memory; else under the limits
  };
  std::vector<Found> unlimited(std::string_view what, const std::vector<Candidate>& candidates);
  // Does the same as `unlimited`. Candidates that would reserve more than the budget, and may be
  // faster than the best known one, also run at the budget's capacity.
  std::vector<Found> within(std::string_view what, const std::vector<Candidate>& candidates,
                            const Limits& limits);
  // If a fitting candidate is known, runs these at the budget's capacity only. This is half the
  // work, but candidates that fail there give no cost, and no cost with more memory is known. If
  // none is known, as `within`.
  std::vector<Found> at_budget(std::string_view what, const std::vector<Candidate>& candidates,
                               const Limits& limits);
  // Returns the index of the candidate that pick_fastest would pick. Floors spare simulations.
  std::size_t fastest(std::string_view what, const std::vector<Candidate>& candidates,
                      const Limits& limits);
  // Simulates the candidates that could be better than the best known one. It ends early, after
  // many simulations in a row without improvement, if `all_of` is false or if nothing fits.
  // `floors` are the candidates' floors for any budget.
  void try_better(std::string_view what, const std::vector<Candidate>& candidates,
                  const std::vector<Floor>& floors, const Limits& limits, bool all_of = true);

  Floor floor(const Candidate& candidate, const Limits& limits) const {
    return floors_.of(candidate, problem_.survey_of(candidate), limits.budget_bytes);
  }
  std::vector<Floor> floors_for_any_budget(const std::vector<Candidate>& candidates) const;
  // Returns a text that is equal for equal candidates.
  std::string key(const Candidate& candidate) const;
  // All candidates, in the order in which they were first requested. Pointers to them stay valid.
  const std::deque<Tried>& all() const { return tried_; }
  // The one that pick_fastest would pick, among those whose plan the core can carry out; null:
  // there is none.
  const Tried* best(const Limits& limits) const;
  // The cost of best() under the limits; no value: no fitting candidate is known.
  std::optional<Cost> fitting(const Limits& limits) const;

 private:
  // Simulates the candidates that floors do not rule out, in order of their floors. Returns the
  // costs of those simulated, by index. `best` is the best known cost, or null.
  std::map<std::size_t, Cost> sieve(std::string_view what, const std::vector<Candidate>& candidates,
                                    const Limits& limits, const Cost* best, bool all_of);
  Tried* known(const Candidate& candidate);
  static std::vector<Found> found(const std::vector<Tried*>& all, const Limits& limits);
  // Simulates candidates with unlimited memory. For the progress: they are a part of `whole`
  // candidates, and `before` of these are done.
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
