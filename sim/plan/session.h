// What planning a step begins with, whatever is asked: the program with its segments, the step that
// keeps everything, and room for all that will be tried.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/plan/capacity.h"
#include "sim/plan/chooser.h"
#include "sim/plan/floors.h"
#include "sim/plan/keep_trace.h"
#include "sim/plan/planner.h"
#include "sim/plan/trials.h"

namespace ferry::plan {

class Session {
 public:
  // All must outlive it. Throws Stopped.
  Session(const Program& program, const Hardware& hardware, const PlanRequest& request);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const Cost& keep() const { return keep_; }  // of one step from a prepared state
  const sim::Simulation& keeps() const { return keeps_; }  // its whole training
  const Survey& survey() const { return problem_.survey; }
  Limits limits(std::int64_t budget_bytes) const;
  std::optional<Certificate> certificate(std::int64_t budget_bytes) const;
  Chooser& chooser() { return chooser_; }
  const Trials& trials() const { return trials_; }

  // What the policy comes to: the fastest that it chooses and whose training runs within the limits.
  // Throws Stopped.
  PolicyRow choose(Policy policy, const Limits& limits);
  Judged judge(const Candidate& candidate, const Limits& limits) const;
  // Runs the candidate's training. `stops`: as the request says, else never.
  PolicyRow row(Policy policy, const Candidate& candidate, const Limits& limits, bool stops) const;
  // The names of the codes that segments run, in calling order.
  std::vector<std::string> segments() const;

 private:
  PolicyRow row(Policy policy, const Candidate& candidate, Judged judged, const Limits& limits,
                bool stops) const;

  const PlanRequest& request_;
  Problem problem_;
  sim::Simulation keeps_;
  Cost keep_;
  KeepTrace trace_;
  Floors floors_;
  Trials trials_;
  Chooser chooser_;
};

}  // namespace ferry::plan
