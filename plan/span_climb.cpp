// SpanSearch::climb: hill climbing. It starts from the fastest plans with spans that fit. Each step
// changes the role of one operator so that less is recomputed, the largest saving first, and is
// taken if the plan still fits and is faster. The result of that operator then stays in memory,
// often in a fragment that was free. Nested spans are not climbed from.
#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "plan/span_search.h"

namespace ferry::plan {
namespace {

// Bound on the plans from which a climb starts. Larger: more plans are found, in more time.
constexpr std::size_t kClimbs = 3;
// Bound on the simulations of one climb: kClimbed divided by the number of operators, at most
// kClimbedMost. Larger: longer climbs.
constexpr std::size_t kClimbed = 48'000;
constexpr std::size_t kClimbedMost = 320;
// Steps that are simulated together; the fastest of them is taken. Larger: better use of many
// processors, fewer steps taken for the same number of simulations.
constexpr std::size_t kClimbedAtOnce = 8;
// Bound on simulations in a row without a faster plan. Larger: a climb gives up later.
constexpr std::size_t kClimbedInVain = 24;
// If a climb saves less than 1/kLittle of the step time of keep, no other climb starts. Larger: a
// smaller saving is enough.
constexpr sim::Time kLittle = 1'000;
// A step is tried only if its operators take more than 1/kLeastSaved of the step time of keep.
// Larger: smaller savings are tried.
constexpr sim::Time kLeastSaved = 5'000;

}  // namespace

// The state of one climb: the current set of spans, and the steps that did not help, by the
// operators that they change.
struct SpanSearch::Climb {
  std::vector<PlanSpan> spans;
  Try of;
  sim::Time step_ns = 0;
  std::size_t left = 0;  // simulations
  std::set<std::vector<std::size_t>> vain = {};
};

void SpanSearch::climb(const What& what, const Limits& limits, Trials& trials) {
  const std::size_t all = choices_.operators();
  if (all == 0) return;
  const std::optional<Cost> best = trials.fitting(limits);
  if (best && !may_win(*best, limits)) return;
  std::vector<std::pair<Cost, const Tried*>> starts;
  for (const Tried& tried : trials.all()) {
    if (!tried.done || !made_.contains(&tried)) continue;
    const Spanned* const own = tried.candidate.spanned.get();
    // Steps do not change nested spans, and a plan without spans has nothing to stop recomputing.
    if (!own || std::ranges::any_of(own->spans, nests)) continue;
    const Cost cost = tried.within(limits);
    if (is_answer(cost, limits)) starts.emplace_back(cost, &tried);
  }
  std::ranges::stable_sort(starts, std::less<>(), [](const auto& each) {
    return std::pair(each.first.step_ns, each.first.device_reserved_bytes);
  });
  std::set<const Spanned*> known;
  for (const auto& [cost, tried] : starts) {
    if (known.size() == kClimbs) return;
    if (!known.insert(tried->candidate.spanned.get()).second) continue;
    Climb from{.spans = tried->candidate.spanned->spans,
               .of = made_.at(tried),
               .step_ns = cost.step_ns,
               .left = std::min(kClimbed / all + 1, kClimbedMost)};
    climb_one(what, limits, trials, from);
    if (cost.step_ns - from.step_ns < kept_.step_ns / kLittle) return;
  }
}

// Runs one climb: some steps at a time, those that save the most time first.
void SpanSearch::climb_one(const What& what, const Limits& limits, Trials& trials, Climb& from) {
  for (std::size_t vain = 0; vain < kClimbedInVain;) {
    struct Next {
      sim::Time saves_ns;
      SpanSteps::Step step;
      std::vector<std::size_t> changes;
      std::vector<PlanSpan> spans = {};
    };
    std::vector<Next> all;
    const std::vector<SpanSteps::SpanRole> here = steps_.places(from.spans);
    for (SpanSteps::Step& step : steps_.from(here)) {
      Next next{0, std::move(step), {}};
      for (const auto& [op, place] : next.step) {
        if (SpanSteps::runs(here[op]) == SpanSteps::runs(place)) continue;
        next.saves_ns += SpanSteps::runs(place) ? -choices_.ns(op) : choices_.ns(op);
        next.changes.push_back(op);
      }
      const bool saves = next.saves_ns > kept_.step_ns / kLeastSaved;
      if (saves && !from.vain.contains(next.changes)) all.push_back(std::move(next));
    }
    std::ranges::stable_sort(all, std::greater<>(), &Next::saves_ns);
    if (all.size() > std::min(kClimbedAtOnce, from.left)) {
      all.resize(std::min(kClimbedAtOnce, from.left));
    }
    if (all.empty()) return;
    from.left -= all.size();
    std::vector<std::vector<PlanSpan>> sets;
    for (Next& each : all) {
      each.spans = tables_->named(steps_.spans(here, each.step));
      sets.push_back(each.spans);
    }
    const SpanTables::Cuts found = tables_->cuts(sets);
    std::vector<Candidate> tries;
    for (const auto& cut : found) tries.push_back(candidate(from.of, cut));
    const std::vector<Trials::Found> tried = trials.at_budget(what(), tries, limits);
    const sim::Time before = from.step_ns;
    vain += all.size();
    for (std::size_t i = 0; i < all.size(); ++i) {
      made_.try_emplace(tried[i].tried, from.of);
      const Cost& cost = tried[i].cost;
      if (!is_answer(cost, limits) || cost.step_ns >= before) {
        from.vain.insert(std::move(all[i].changes));
      } else if (cost.step_ns < from.step_ns) {
        vain = 0;
        from.step_ns = cost.step_ns;
        from.spans = std::move(all[i].spans);
      }
    }
  }
}

}  // namespace ferry::plan
