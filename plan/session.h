// What planning a step begins with, whatever is asked: the program with its segments, the step that
// keeps everything, and room for all that will be tried.
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
  // All must outlive it. `tables`: of another session for the same program on the same hardware, or
  // null. Throws Stopped.
  Session(const Program& program, const Hardware& hardware, const PlanRequest& request,
          std::shared_ptr<SpanTables> tables = nullptr);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const Cost& keep() const { return keep_; }               // as what is tried
  const sim::Simulation& keeps() const { return keeps_; }  // its whole training
  std::int64_t keep_judged_bytes() const {
    return keeps_.errors.empty() ? cost_of(keeps_, problem_.judged).device_reserved_bytes
                                 : kUnlimited;
  }
  const Survey& survey() const { return problem_.survey; }
  Limits limits(std::int64_t budget_bytes) const;
  std::optional<Certificate> certificate(std::int64_t budget_bytes) const;
  Chooser& chooser() { return chooser_; }
  const Trials& trials() const { return trials_; }

  // What another session for the same program chose: a candidate of `best` here. Throws Stopped.
  void try_first(const Candidate& candidate, const Limits& limits) {
    trials_.within(name(Policy::kBest), {candidate}, limits);
  }
  // What the policy comes to: the fastest of its candidates whose training runs within the limits.
  // Throws Stopped.
  PolicyRow choose(Policy policy, const Limits& limits);
  // Throws Stopped, if it `stops`.
  Verdict judge(const Candidate& candidate, const Limits& limits, bool stops) const;
  // `known`: the candidate's verdict for other limits.
  Verdict judge_at(const Candidate& candidate, Verdict known, const Limits& limits) const;
  // Of all that were tried the one whose training runs in the least, if that is less than is known
  // and the host has room for it. Throws Stopped, if it `stops`.
  std::optional<std::pair<Candidate, Verdict>> needing_less(const Limits& limits,
                                                            std::int64_t known, bool stops);
  // The candidate's training at a capacity; none: it does not run.
  std::optional<sim::Time> step_at(const Candidate& candidate, std::int64_t device_bytes) const;
  // Runs the candidate's training. `stops`: as the request says, else never.
  PolicyRow row(Policy policy, const Candidate& candidate, const Limits& limits, bool stops) const;
  PolicyRow row(Policy policy, const Candidate& candidate, Verdict verdict, const Limits& limits,
                bool stops) const;
  // The row of `best` for a search that was stopped, of which something may fit.
  PolicyRow best_by_then(const Limits& limits) const;
  // The names of the codes that segments run, in calling order.
  std::vector<std::string> segments() const;

 private:
  // What a policy has come to so far.
  struct Chosen {
    bool fits = false;  // then these are of the fastest training that runs within the limits
    sim::Time step_ns = 0;
    Candidate candidate;
    Candidate shown;  // that, or what needs the least
  };

  // Its training at a capacity. The candidate must outlive it.
  RunAt runs(const Candidate& candidate, bool stops) const;
  void scan(Policy policy, const Limits& limits, Chosen& chosen);
  // The step of the candidate's training, if it runs within the limits.
  std::optional<sim::Time> fits_as_a_whole(const Candidate& candidate, const Limits& limits) const;
  // Whether their trainings run at a capacity: then it is known.
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
  // The steps of trainings that were run at a capacity, by that and by key; none: it did not run.
  std::map<std::pair<std::int64_t, std::string>, std::optional<sim::Time>> ran_;
  std::map<std::pair<std::int64_t, std::string>, bool> runs_at_;  // whether it ran, likewise
};

}  // namespace ferry::plan
