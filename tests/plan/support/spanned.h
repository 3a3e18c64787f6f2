// Spans of operators for tests: random ones, and all sets of spans of a small forward.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "formats/plan.h"
#include "formats/spans.h"
#include "plan/mix.h"
#include "plan/survey.h"
#include "sim/choices/draws.h"
#include "sim/run/simulation.h"

namespace ferry::test {

// The role of an operator in a plan with spans.
enum class SpanPlace : std::uint8_t { kOutside, kFirst, kFirstKept, kNext, kNextKept };
inline constexpr int kSpanPlaces = 5;

// Makes spans of roles. If an operator cannot continue a span, it begins a new one. `from` is the
// operator of the first role.
inline std::vector<PlanSpan> spans_of(const std::vector<OperatorRange>& operators,
                                      const std::vector<SpanPlace>& places, std::size_t from = 0) {
  std::vector<PlanSpan> spans;
  bool open = false;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const std::size_t op = from + i;
    const SpanPlace place = places[i];
    const bool next = place == SpanPlace::kNext || place == SpanPlace::kNextKept;
    const bool joins = next && open && operators[op - 1].joins_next;
    open = place != SpanPlace::kOutside;
    if (!open) continue;
    if (!joins) spans.push_back({.first = op});
    spans.back().last = op;
    if (place == SpanPlace::kFirstKept || place == SpanPlace::kNextKept) {
      spans.back().keep.push_back(op);
    }
  }
  return spans;
}

// Returns random spans. `levels` is the largest depth of nested spans inside them.
inline std::vector<PlanSpan> draw_spans(choices::Draws& draws,
                                        const std::vector<OperatorRange>& operators,
                                        std::size_t from, std::size_t count, int levels) {
  std::vector<SpanPlace> places;
  for (std::size_t i = 0; i < count; ++i) {
    const bool outside = draws.one_in(4);
    const bool first = draws.one_in(4);
    const bool kept = draws.one_in(4);
    places.push_back(outside ? SpanPlace::kOutside
                     : first ? (kept ? SpanPlace::kFirstKept : SpanPlace::kFirst)
                             : (kept ? SpanPlace::kNextKept : SpanPlace::kNext));
  }
  std::vector<PlanSpan> spans = spans_of(operators, places, from);
  for (PlanSpan& span : spans) {
    if (levels == 0 || draws.one_in(3)) continue;
    span.inner = draw_spans(draws, operators, span.first, span.last + 1 - span.first, levels - 1);
  }
  return spans;
}

inline std::vector<PlanSpan> draw_spans(choices::Draws& draws, const Program& program,
                                        int levels = 2) {
  const std::vector<OperatorRange> operators = operator_ranges(program);
  return draw_spans(draws, operators, 0, operators.size(), levels);
}

// Visits all sets of spans. There are 5^n for n operators, so the forward must be small.
inline void for_each_spans(const Program& program,
                           const std::function<void(const std::vector<PlanSpan>&)>& see) {
  const std::vector<OperatorRange> operators = operator_ranges(program);
  std::vector<SpanPlace> places(operators.size(), SpanPlace::kOutside);
  for (;;) {
    see(spans_of(operators, places));
    std::size_t at = 0;
    for (; at < places.size(); ++at) {
      const int next = (static_cast<int>(places[at]) + 1) % kSpanPlaces;
      places[at] = static_cast<SpanPlace>(next);
      if (next != 0) break;
    }
    if (at == places.size()) return;
  }
}

// Returns the options of a step with these spans. `moves` is called for each tensor that the hooks
// around the spans see, and returns true to offload it.
inline sim::SimulationOptions spanned(const Program& program, const Hardware& hardware,
                                      const std::vector<PlanSpan>& spans, CoreOptions offload,
                                      const std::function<bool()>& moves) {
  const plan::Survey found = plan::survey(program, hardware, spans);
  plan::Mix mix = plan::keep_all(found);
  for (PlanChoice& choice : mix.packs) {
    if (moves()) choice = PlanChoice::kOffload;
  }
  plan::settle(mix, found, offload.min_bytes);
  offload.offload = plan::offload_choices(found, mix);
  sim::SimulationOptions options;
  options.offload = std::move(offload);
  options.segments = plan::segment_plan(found, mix);
  options.spans = spans;
  return options;
}

}  // namespace ferry::test
