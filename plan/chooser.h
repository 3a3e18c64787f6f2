// Chooses one candidate for each policy. Most policies have a fixed list (policies.h); for `best`
// the chooser also runs the searches over spans (span_search.h) for the given budget.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plan/keep_trace.h"
#include "plan/picks.h"
#include "plan/policies.h"
#include "plan/span_search.h"
#include "plan/trials.h"
#include "scenarios/policy.h"

namespace ferry::plan {

class Chooser {
 public:
  // All references must outlive it. `tables` are the tables of another search for the same program
  // on the same hardware; null: they are made when needed.
  Chooser(const Problem& problem, const Cost& keep, const KeepTrace& trace, Trials& trials,
          std::shared_ptr<SpanTables> tables)
      : problem_(problem),
        keep_(keep),
        trace_(trace),
        trials_(trials),
        tables_(std::move(tables)) {}
  const std::shared_ptr<SpanTables>& tables() const { return tables_; }

  // Throws std::invalid_argument for a policy that needs segments or operators if there are none,
  // and Stopped.
  Candidate choose(Policy policy, const Limits& limits);
  // Returns the simulated candidates of the policy that may run within the limits, by step time.
  // Empty for a policy with only one candidate, and for one that does not want the fastest.
  std::vector<const Tried*> contenders(Policy policy, const Limits& limits) const;
  // Returns all candidates that fit the host and reserve no more than keeping everything, by the
  // bytes that they allocate.
  std::vector<const Tried*> by_allocated(const Limits& limits) const;
  // For a policy that offloads only what comes back in time (Choice::kFullSpeed): its candidate
  // without offload. No value for other policies.
  std::optional<Candidate> moving_nothing(Policy policy) const;
  // The searches that `best` runs for a budget.
  struct Effort {
    SpanSearch::Breadth spans = {};
    bool known = true;   // all fixed candidates; false: until many in a row are no better
    bool climbs = true;  // hill climbing
    bool walks = true;   // best-first search even if nothing fits
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
  // The members below are made when they are needed.
  std::shared_ptr<SpanTables> tables_;
  std::optional<SpanSearch> spans_;
  std::map<Policy, std::vector<Candidate>> field_;  // candidates of other systems' policies
  std::vector<Candidate> known_;                    // the fixed candidates of `best`
  std::vector<Floor> known_floors_;
};

}  // namespace ferry::plan
