// Chooses how each policy runs the step, of the candidates that it has (policies.h).
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plan/best.h"
#include "plan/keep_trace.h"
#include "plan/picks.h"
#include "plan/policies.h"
#include "plan/span_search.h"
#include "plan/trials.h"
#include "scenarios/policy.h"

namespace ferry::plan {

class Chooser {
 public:
  // All must outlive it.
  // `tables`: those that another search for the same program on the same hardware has made; null:
  // they are made when they are asked for.
  Chooser(const Problem& problem, const Cost& keep, const KeepTrace& trace, Trials& trials,
          std::shared_ptr<SpanTables> tables)
      : problem_(problem),
        keep_(keep),
        trace_(trace),
        trials_(trials),
        tables_(std::move(tables)) {}
  const std::shared_ptr<SpanTables>& tables() const { return tables_; }

  // Throws std::invalid_argument for a policy that needs segments where there are none, and
  // Stopped.
  Candidate choose(Policy policy, const Limits& limits);
  // Those that were tried of the policy's candidates and may run within the limits, by their time:
  // of a policy that has but one, or that does not ask for the fastest, none.
  std::vector<const Tried*> contenders(Policy policy, const Limits& limits) const;
  // All that may run within the host's limit and reserves no more than keeping everything, by what
  // it allocates.
  std::vector<const Tried*> by_allocated(const Limits& limits) const;
  // What a policy does that moves what is worth moving, and finds that nothing is; none: it is no
  // such policy.
  std::optional<Candidate> moving_nothing(Policy policy) const;
  // What `best` tries for a budget.
  struct Effort {
    SpanSearch::Breadth spans = {};
    bool modules = true;  // all ways that modules have, or some, and to do less than these,
    bool known = true;    // what is known for any budget, or until many are no better,
    bool climbs = true;   // steps away from the fastest spans,
    bool walks = true;    // and where nothing fits, from what came nearest
  };
  Candidate choose_best(const Limits& limits, const Effort& effort);

 private:
  std::string so_far(const Limits& limits) const;
  void prepare(bool searches);
  SpanSearch& spans();
  Candidate choose_of_field(Policy policy, const Limits& limits);
  std::size_t pick(const Search& search, const std::vector<Candidate>& all, const Limits& limits);

  const Problem& problem_;
  const Cost& keep_;
  const KeepTrace& trace_;
  Trials& trials_;
  // Made when they are asked for.
  std::shared_ptr<SpanTables> tables_;
  std::optional<SpanSearch> spans_;
  std::optional<BestSearch> best_;
  std::map<Policy, std::vector<Candidate>> field_;  // candidates of the field's policies
  std::vector<Candidate> known_;                    // best's, for any budget
  std::vector<Floor> known_floors_;
};

}  // namespace ferry::plan
