#include "plan/span_steps.h"

#include <algorithm>

namespace ferry::plan {

std::vector<SpanSteps::SpanRole> SpanSteps::places(const std::vector<PlanSpan>& spans) const {
  std::vector<SpanRole> places(choices_.operators(), SpanRole::kOutside);
  std::size_t op = 0;
  for (const PlanSpan& span : spans) {
    while (op < places.size() && choices_.first_place(op) < span.first) ++op;
    bool first = true;
    for (; op < places.size() && choices_.first_place(op) <= span.last; ++op, first = false) {
      const bool kept =
          std::binary_search(span.keep.begin(), span.keep.end(), choices_.first_place(op));
      places[op] = kept ? SpanRole::kKept : first ? SpanRole::kFirst : SpanRole::kNext;
    }
  }
  bool open = false;
  for (op = 0; op < places.size(); ++op) {
    places[op] = settled(op, places[op], open);
    open = goes_on(op, places[op]);
  }
  return places;
}

SpanSteps::SpanRole SpanSteps::settled(std::size_t op, SpanRole place, bool open) const {
  if (runs(place) && !choices_.runs_again(op)) place = SpanRole::kKept;
  if (place == SpanRole::kKept && !open) return SpanRole::kOutside;
  return place == SpanRole::kNext && !open ? SpanRole::kFirst : place;
}

// Makes the step that gives `op` the role `place`. Later operators are adjusted, up to the first
// one after which a span continues, or not, as before.
SpanSteps::Step SpanSteps::step(const std::vector<SpanRole>& places, std::size_t op,
                                SpanRole place) const {
  Step step;
  bool open = op > 0 && goes_on(op - 1, places[op - 1]);
  for (std::size_t at = op; at < places.size(); ++at) {
    const SpanRole then = settled(at, at == op ? place : places[at], open);
    if (then != places[at]) step.emplace_back(at, then);
    open = goes_on(at, then);
    if (open == goes_on(at, places[at])) break;
  }
  return step;
}

std::vector<SpanSteps::Step> SpanSteps::from(const std::vector<SpanRole>& places) const {
  std::vector<Step> found;
  for (std::size_t op = 0; op < places.size(); ++op) {
    const auto own = static_cast<std::ptrdiff_t>(found.size());
    for (const SpanRole place :
         {SpanRole::kOutside, SpanRole::kFirst, SpanRole::kNext, SpanRole::kKept}) {
      Step next = step(places, op, place);
      const bool known = std::find(found.begin() + own, found.end(), next) != found.end();
      if (!next.empty() && !known) found.push_back(std::move(next));
    }
  }
  return found;
}

std::vector<PlanSpan> SpanSteps::spans(std::vector<SpanRole> places, const Step& step) const {
  for (const auto& [op, place] : step) places[op] = place;
  std::vector<PlanSpan> spans;
  for (std::size_t op = 0; op < places.size(); ++op) {
    if (places[op] == SpanRole::kOutside) continue;
    if (places[op] == SpanRole::kFirst) spans.push_back({.first = choices_.first_place(op)});
    spans.back().last = choices_.first_place(op + 1) - 1;
    if (places[op] != SpanRole::kKept) continue;
    for (std::uint64_t at = choices_.first_place(op); at < choices_.first_place(op + 1); ++at) {
      spans.back().keep.push_back(at);
    }
  }
  return spans;
}

}  // namespace ferry::plan
