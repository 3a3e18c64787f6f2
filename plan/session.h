// A session plans one program on one card with one allocator: all policies and all budgets of a
// request. It holds the program with its segments, the traced step that keeps everything, and the
// store of all simulated candidates (trials.h). `choose` finds a policy's candidate and judges its
// whole training; if the training needs more memory than the simulated steps did, it searches again
// for a corrected budget.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plan/capacity.h"
#include "plan/chooser.h"
#include "plan/floors.h"
#include "plan/keep_trace.h"
#include "plan/planner.h"
#include "plan/trials.h"

namespace ferry::plan {

class Session {
 public:
  // The references must outlive the session. `tables` are those of another session for the same
  // program on the same hardware, or null. Throws Stopped.
  Session(const Program& program, const Hardware& hardware, const PlanRequest& request,
          std::shared_ptr<SpanTables> tables = nullptr);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const Cost& keep() const { return keep_; }               // keep's cost, as a candidate
  const sim::Simulation& keeps() const { return keeps_; }  // keep's whole training
  std::int64_t keep_judged_bytes() const {
    return keeps_.errors.empty() ? cost_of(keeps_, problem_.judged).device_reserved_bytes
                                 : kUnlimited;
  }
  const Survey& survey() const { return problem_.survey; }
  Limits limits(std::int64_t budget_bytes) const;
  std::optional<Certificate> certificate(std::int64_t budget_bytes) const;
  Chooser& chooser() { return chooser_; }
  const Trials& trials() const { return trials_; }

  // Simulates a candidate that another session for the same program chose. Throws Stopped.
  void try_first(const Candidate& candidate, const Limits& limits) {
    trials_.within(name(Policy::kBest), {candidate}, limits);
  }
  // Returns the policy's row: the fastest of its candidates whose training runs within the limits;
  // if none does, the one that needs the least memory. Throws Stopped.
  PolicyRow choose(Policy policy, const Limits& limits);
  // Judges the candidate's whole training. Throws Stopped, if `stops`.
  Verdict judge(const Candidate& candidate, const Limits& limits, bool stops) const;
  // Does the same; `known` is the candidate's verdict for other limits. Does not stop.
  Verdict judge_at(const Candidate& candidate, Verdict known, const Limits& limits) const;
  // Returns the simulated candidate whose training runs in the least memory, if that is less than
  // `known` bytes and it fits the host. Throws Stopped, if `stops`.
  std::optional<std::pair<Candidate, Verdict>> needing_less(const Limits& limits,
                                                            std::int64_t known, bool stops);
  // Returns the step time of the candidate's training at a capacity; no value: it does not run.
  std::optional<sim::Time> step_at(const Candidate& candidate, std::int64_t device_bytes) const;
  // Runs the candidate's training and makes its row. With `stops`, the request's `stop` can end it.
  PolicyRow row(Policy policy, const Candidate& candidate, const Limits& limits, bool stops) const;
  PolicyRow row(Policy policy, const Candidate& candidate, Verdict verdict, const Limits& limits,
                bool stops) const;
  // Returns the row of `best` after its search was stopped. A candidate must have been simulated.
  PolicyRow best_by_then(const Limits& limits) const;
  // Returns the names of the segments, in call order; empty names if they are ambiguous.
  std::vector<std::string> segments() const;

 private:
  // The best result of a policy so far.
  struct Chosen {
    bool fits = false;  // `step_ns` and `candidate` are the fastest training within the limits
    sim::Time step_ns = 0;
    Candidate candidate;
    Candidate shown;  // the candidate for the row; if none fits, the one that needs the least
  };

  // Returns a function that runs the candidate's training at a capacity. The candidate must outlive
  // the function.
  RunAt runs(const Candidate& candidate, bool stops) const;
  // Runs trainings of contenders until none of the rest can be faster, and updates `chosen`.
  void scan(Policy policy, const Limits& limits, Chosen& chosen);
  // Returns the step time of the candidate's training, if it runs within the limits.
  std::optional<sim::Time> fits_as_a_whole(const Candidate& candidate, const Limits& limits) const;
  // Runs these trainings at a capacity and stores the results in runs_at_.
  void run_at(std::int64_t device_bytes, const std::vector<const Tried*>& all);
  Chooser::Effort effort(int round, const Limits& limits, const Limits& asked) const;
  std::optional<std::int64_t> next_budget(const Verdict& verdict, const Limits& limits,
                                          const Limits& asked) const;

  const PlanRequest& request_;
  Problem problem_;
  sim::Simulation keeps_;
  Cost keep_;
  KeepTrace trace_;
  Floors floors_;
  Trials trials_;
  Chooser chooser_;
  // Step times of whole trainings, by budget and candidate key; no value: it did not fit.
  std::map<std::pair<std::int64_t, std::string>, std::optional<sim::Time>> ran_;
  // True if the whole training ran, by capacity and candidate key.
  std::map<std::pair<std::int64_t, std::string>, bool> runs_at_;
};

}  // namespace ferry::plan
