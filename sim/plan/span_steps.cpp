#include "sim/plan/span_steps.h"

#include <algorithm>
#include <set>
#include <utility>

namespace ferry::plan {

std::vector<SpanSteps::Place> SpanSteps::places(const std::vector<PlanSpan>& spans) const {
  std::vector<Place> places(choices_.operators(), Place::kOutside);
  std::size_t op = 0;
  for (const PlanSpan& span : spans) {
    while (op < places.size() && choices_.first_place(op) < span.first) ++op;
    bool first = true;
    for (; op < places.size() && choices_.first_place(op) <= span.last; ++op, first = false) {
      const bool kept =
          std::binary_search(span.keep.begin(), span.keep.end(), choices_.first_place(op));
      places[op] = kept ? Place::kKept : first ? Place::kFirst : Place::kNext;
    }
  }
  return settled(std::move(places));
}

std::vector<SpanSteps::Place> SpanSteps::settled(std::vector<Place> places) const {
  bool open = false;  // a span may go on
  for (std::size_t op = 0; op < places.size(); ++op) {
    Place& place = places[op];
    const bool runs = place == Place::kFirst || place == Place::kNext;
    if (runs && !choices_.runs_again(op)) place = Place::kKept;
    if (place == Place::kKept && !open) place = Place::kOutside;
    if (place == Place::kNext && !open) place = Place::kFirst;
    open = place != Place::kOutside && choices_.joins_next(op);
  }
  return places;
}

std::vector<PlanSpan> SpanSteps::spans(const std::vector<Place>& places) const {
  std::vector<PlanSpan> spans;
  for (std::size_t op = 0; op < places.size(); ++op) {
    if (places[op] == Place::kOutside) continue;
    if (places[op] == Place::kFirst) spans.push_back({.first = choices_.first_place(op)});
    spans.back().last = choices_.first_place(op + 1) - 1;
    if (places[op] != Place::kKept) continue;
    for (std::uint64_t at = choices_.first_place(op); at < choices_.first_place(op + 1); ++at) {
      spans.back().keep.push_back(at);
    }
  }
  return spans;
}

std::vector<std::vector<PlanSpan>> SpanSteps::from(const std::vector<PlanSpan>& spans) const {
  const std::vector<Place> here = places(spans);
  std::set<std::vector<Place>> seen = {here};
  std::vector<std::vector<PlanSpan>> found;
  for (std::size_t op = 0; op < here.size(); ++op) {
    for (const Place place : {Place::kOutside, Place::kFirst, Place::kNext, Place::kKept}) {
      std::vector<Place> next = here;
      next[op] = place;
      next = settled(std::move(next));
      if (seen.insert(next).second) found.push_back(this->spans(next));
    }
  }
  return found;
}

}  // namespace ferry::plan
