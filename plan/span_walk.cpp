// SpanSearch::walk: best-first search over sets of spans. It takes the best set found so far,
// simulates random neighbours of it (span_steps.h), and repeats. It runs if no plan fits the
// budget, or if the forward has few operators; on small forwards it reaches all sets of spans. It
// ignores nested spans and moves nothing.
#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "plan/span_search.h"

namespace ferry::plan {
namespace {

// Bound on the sets of spans that one search simulates: kWalked divided by the number of operators
// and by the simulated steps of a candidate, at most kWalkedMost. Larger: more plans are found, in
// more time.
constexpr std::size_t kWalked = 64'000;
constexpr std::size_t kWalkedMost = 1'024;
// Bound on the neighbours of one set that are simulated. Larger: a wider search, with fewer sets
// expanded.
constexpr std::size_t kStepsMost = 64;
// With at most this many operators, the search runs even if a plan fits. Larger: larger programs
// are searched this way too, in more time.
constexpr std::size_t kFewWalked = 48;

// The priority queue of the search: sets of spans without offload. The first set is the fastest one
// that fits; if none fits, the one that reserves the least. Ties go to the set that was added
// first.
class Nearest {
 public:
  using Spans = std::vector<PlanSpan>;

  explicit Nearest(const Limits& limits) : limits_(limits) {}

  bool empty() const { return open_.empty(); }
  bool knows(const Spans& spans) const { return met_.contains(spans); }
  void add(Spans spans, const Cost& cost) {
    if (met_.insert(spans).second) open_.emplace(std::pair(rank(cost), met_.size()), spans);
  }
  Spans take() {
    const Spans spans = std::move(open_.begin()->second);
    open_.erase(open_.begin());
    return spans;
  }

 private:
  using Rank = std::tuple<bool, bool, std::int64_t, std::int64_t, sim::Time>;
  Rank rank(const Cost& cost) const {
    const bool in = fits(cost, limits_);
    return {cost.fails, !in, in ? cost.step_ns : cost.device_reserved_bytes, cost.device_peak_bytes,
            cost.step_ns};
  }

  const Limits limits_;
  std::map<std::pair<Rank, std::size_t>, Spans> open_;
  std::set<Spans> met_;
};

}  // namespace

void SpanSearch::walk(const What& what, const Limits& limits, Trials& trials) {
  const std::size_t all = choices_.operators();
  if (all == 0 || (all > kFewWalked && trials.fitting(limits))) return;
  Nearest nearest(limits);
  for (const Tried& each : trials.all()) {
    const Candidate& candidate = each.candidate;
    if (!each.done || candidate.options || candidate.trl) continue;
    const Spanned* const own = candidate.spanned.get();
    const bool recomputes = std::ranges::count(candidate.mix.recompute, true) > 0;
    if (own && std::ranges::any_of(own->spans, nests)) continue;
    if (!recomputes) nearest.add(own ? own->spans : std::vector<PlanSpan>(), each.cost);
  }
  std::mt19937_64 draws(all);
  // The progress text looks at all trials, and a round has few. So it is renewed only now and then.
  std::string words = what();
  std::size_t told = 0, tried = 0;
  const std::size_t steps_each = std::max<std::size_t>(problem_.tried_steps(), 1);
  for (std::size_t left = std::min(kWalked / all / steps_each + 1, kWalkedMost);
       left > 0 && !nearest.empty();) {
    const std::vector<SpanSteps::SpanRole> here = steps_.places(nearest.take());
    std::vector<SpanSteps::Step> steps = steps_.from(here);
    std::vector<std::vector<PlanSpan>> next;
    while (!steps.empty() && next.size() < std::min(kStepsMost, left)) {
      std::swap(steps[draws() % steps.size()], steps.back());
      std::vector<PlanSpan> spans = tables_->named(steps_.spans(here, steps.back()));
      steps.pop_back();
      if (!nearest.knows(spans)) next.push_back(std::move(spans));
    }
    left -= std::max<std::size_t>(next.size(), 1);  // so the loop ends if all neighbours are known
    const SpanTables::Cuts found = tables_->cuts(next);
    std::vector<Candidate> tries;
    for (const auto& cut : found) tries.push_back(moving(0, 0, cut));
    const std::vector<Cost> costs = trials.of(words, tries);
    for (std::size_t i = 0; i < costs.size(); ++i) nearest.add(std::move(next[i]), costs[i]);
    tried += costs.size();
    if (tried - told < kStepsMost) continue;
    words = what();
    told = tried;
  }
}

}  // namespace ferry::plan
