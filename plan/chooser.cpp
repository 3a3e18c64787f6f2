#include "plan/chooser.h"

#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "formats/parallel.h"
#include "plan/planner.h"
#include "plan/span_model.h"

namespace ferry::plan {

Candidate Chooser::choose(Policy policy, const Limits& limits) {
  const Survey& found = problem_.survey;
  const std::string_view what = name(policy);
  if (is_for_segments(policy) && found.segments.empty()) {
    throw std::invalid_argument("policy '" + std::string(what) +
                                "' needs segments: " + kNoSegments);
  }
  const Search& search = search_of(policy);
  if (search.choice == Choice::kBest) return choose_best(limits, {});
  if (search.choice == Choice::kSpans) return choose_of_field(policy, limits);
  std::vector<Candidate> all = search.candidates(found);
  return std::move(all[pick(search, all, limits)]);
}

std::vector<const Tried*> Chooser::contenders(Policy policy, const Limits& limits) const {
  const Search& search = search_of(policy);
  if (search.choice == Choice::kOnly || search.choice == Choice::kFullSpeed) return {};
  std::set<std::string> own;
  const auto field = field_.find(policy);
  if (field != field_.end()) {
    for (const Candidate& each : field->second) own.insert(trials_.key(each));
  }
  if (search.choice == Choice::kFastest) {
    for (const Candidate& each : search.candidates(problem_.survey)) own.insert(trials_.key(each));
  }
  std::vector<std::pair<Cost, const Tried*>> found;
  for (const Tried& tried : trials_.all()) {
    const Cost& cost = tried.cost;
    const bool may_run = tried.done && !cost.fails && !tried.candidate.trl &&
                         cost.device_peak_bytes <= limits.budget_bytes &&
                         cost.host_peak_bytes <= limits.host_bytes && !is_useless(cost, limits);
    if (may_run && (own.empty() || own.contains(trials_.key(tried.candidate)))) {
      found.emplace_back(tried.within(limits), &tried);
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first.step_ns, a.first.device_reserved_bytes) <
           std::pair(b.first.step_ns, b.first.device_reserved_bytes);
  });
  std::vector<const Tried*> order;
  for (const auto& [cost, tried] : found) order.push_back(tried);
  return order;
}

std::vector<const Tried*> Chooser::by_allocated(const Limits& limits) const {
  std::vector<const Tried*> found;
  for (const Tried& tried : trials_.all()) {
    const Cost& cost = tried.cost;
    const bool may_run = tried.done && !cost.fails && !tried.candidate.trl &&
                         !pins_too_much(cost, limits) && !is_useless(cost, limits);
    if (may_run) found.push_back(&tried);
  }
  std::stable_sort(found.begin(), found.end(), [](const Tried* a, const Tried* b) {
    return a->cost.device_peak_bytes < b->cost.device_peak_bytes;
  });
  return found;
}

std::optional<Candidate> Chooser::moving_nothing(Policy policy) const {
  const Search& search = search_of(policy);
  if (search.choice != Choice::kFullSpeed) return std::nullopt;
  if (search.baseline) return search.baseline(problem_.survey);
  return Candidate{std::nullopt, keep_all(problem_.survey)};
}

SpanSearch& Chooser::spans() {
  if (!tables_) {
    tables_ = std::make_shared<SpanTables>(problem_.whole, problem_.hardware, trace_);
  }
  if (!spans_) spans_.emplace(problem_, tables_, trace_, keep_);
  return *spans_;
}

Candidate Chooser::choose_of_field(Policy policy, const Limits& limits) {
  if (!has_operators(problem_.whole)) {
    throw std::invalid_argument("policy '" + std::string(name(policy)) +
                                "' chooses operators: " + kNoOperators);
  }
  const auto [known, fresh] = field_.try_emplace(policy);
  std::vector<Candidate>& all = known->second;
  if (fresh) all = spans().of_field(policy);
  if (all.empty()) all.push_back({std::nullopt, keep_all(problem_.survey)});  // keep's step fails
  return all[trials_.fastest(name(policy), all, limits)];
}

// Makes the search over spans and the fixed candidates, in parallel; neither part uses the other.
void Chooser::prepare(bool searches) {
  const std::array<std::function<void()>, 2> parts = {
      [&] {
        if (searches && problem_.spans) spans();
      },
      [&] {
        if (!known_.empty()) return;
        known_ = search_of(Policy::kBest).candidates(problem_.survey);
        known_floors_ = trials_.floors_for_any_budget(known_);
      }};
  in_parallel(parts.size(), [&](std::size_t part) { parts[part](); });
}

// Searches spans first: what they find rules out most of the fixed candidates.
Candidate Chooser::choose_best(const Limits& limits, const Effort& effort) {
  const std::string_view what = name(Policy::kBest);
  const bool searches = keep_.fails || !fits(keep_, limits);
  prepare(searches);
  trials_.of(what, {known_.front()});  // keeps everything
  if (searches) {
    if (problem_.spans) {
      spans().search([&] { return so_far(limits); }, limits, trials_, effort.spans);
    }
    if (spans_ && effort.climbs) spans_->climb([&] { return so_far(limits); }, limits, trials_);
    if (spans_ && (effort.walks || trials_.fitting(limits))) {
      spans_->walk([&] { return so_far(limits); }, limits, trials_);
    }
  }
  trials_.try_better(so_far(limits), known_, known_floors_, limits, effort.known);
  return trials_.best(limits)->candidate;
}

// Returns the progress text: "best", or "best, 1.094 of keep so far".
std::string Chooser::so_far(const Limits& limits) const {
  std::string text(name(Policy::kBest));
  const std::optional<Cost> best = trials_.fitting(limits);
  if (!best) return text;
  const std::int64_t slowdown = slowdown_permille(best->step_ns, keep_.step_ns);
  const std::string thousandths = std::to_string(slowdown % 1000 + 1000).substr(1);
  return text + ", " + std::to_string(slowdown / 1000) + "." + thousandths + " of keep so far";
}

std::size_t Chooser::pick(const Search& search, const std::vector<Candidate>& all,
                          const Limits& limits) {
  const std::string_view what = name(search.policy);
  switch (search.choice) {
    case Choice::kOnly:
      return 0;
    case Choice::kFastest:
      return trials_.fastest(what, all, limits);
    case Choice::kSpans:
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
