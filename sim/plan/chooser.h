// Chooses how each policy runs the step, of the candidates that it has (policies.h).
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "scenarios/policy.h"
#include "sim/plan/best.h"
#include "sim/plan/keep_trace.h"
#include "sim/plan/picks.h"
#include "sim/plan/policies.h"
#include "sim/plan/trials.h"

namespace ferry::plan {

class Chooser {
 public:
  // All must outlive it.
  Chooser(const Problem& problem, const Cost& keep, const KeepTrace& trace, Trials& trials)
      : problem_(problem), keep_(keep), trace_(trace), trials_(trials) {}

  // Throws std::invalid_argument for a policy that needs segments where there are none, and
  // Stopped.
  Candidate choose(Policy policy, const Limits& limits);

 private:
  Candidate choose_best(std::string_view what, const std::vector<Candidate>& known,
                        const Limits& limits);
  std::size_t pick(const Search& search, const std::vector<Candidate>& all, const Limits& limits);

  const Problem& problem_;
  const Cost& keep_;
  const KeepTrace& trace_;
  Trials& trials_;
  std::optional<BestSearch> best_;  // made when it is asked for
};

}  // namespace ferry::plan
