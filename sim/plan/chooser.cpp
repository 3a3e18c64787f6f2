#include "sim/plan/chooser.h"

#include <stdexcept>
#include <string>
#include <utility>

#include "sim/plan/planner.h"

namespace ferry::plan {

Candidate Chooser::choose(Policy policy, const Limits& limits) {
  const Survey& found = problem_.survey;
  const std::string_view what = name(policy);
  if (is_for_segments(policy) && found.segments.empty()) {
    throw std::invalid_argument("policy '" + std::string(what) +
                                "' needs segments: " + kNoSegments);
  }
  const Search& search = search_of(policy);
  std::vector<Candidate> all = search.candidates(found);
  if (search.choice == Choice::kBest) return choose_best(what, all, limits);
  return std::move(all[pick(search, all, limits)]);
}

// What the search finds rules out most of the others.
Candidate Chooser::choose_best(std::string_view what, const std::vector<Candidate>& known,
                               const Limits& limits) {
  const Candidate& keep = known.front();
  const bool keeps = !keep_.fails && fits(keep_, limits);
  trials_.of(what, {keep});
  if (!keeps) {
    if (!best_) best_.emplace(problem_, trace_);
    best_->search(what, limits, trials_);
  }
  trials_.try_better(what, known, limits);
  return trials_.best(limits)->candidate;
}

std::size_t Chooser::pick(const Search& search, const std::vector<Candidate>& all,
                          const Limits& limits) {
  const std::string_view what = name(search.policy);
  switch (search.choice) {
    case Choice::kOnly:
      return 0;
    case Choice::kFastest:
      return trials_.fastest(what, all, limits);
    case Choice::kBest:
    case Choice::kFullSpeed:
      break;
  }
  const sim::Time computes =
      search.baseline ? trials_.of(what, {search.baseline(problem_.survey)}).front().step_ns
                      : keep_.step_ns;
  return pick_full_speed(trials_.of(what, all), limits, computes, problem_.hardware.link);
}

}  // namespace ferry::plan
