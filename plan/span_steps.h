// The sets of spans that are one step from another: one operator begins a span, or is in it and
// runs again, or is in it and kept, or is outside, and was something else before.
//
// What spans.h of formats says of a plan's spans holds for them: they are in order, and none parts
// what runs together. A kept operator that begins a span is outside as well, and is written so.
//
// There are some steps for each operator, and a step changes the operators beside it alone. So
// steps are told as what they change, and a set of spans is made of the few that are tried.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "formats/plan.h"
#include "plan/span_table.h"

namespace ferry::plan {

class SpanSteps {
 public:
  // Of an operator, as the choices have them: where it is.
  enum class SpanRole : std::uint8_t { kOutside, kFirst, kNext, kKept };
  static bool runs(SpanRole place) { return place == SpanRole::kFirst || place == SpanRole::kNext; }
  // Operators in their order, and where they are then.
  using Step = std::vector<std::pair<std::size_t, SpanRole>>;

  // The choices must outlive it.
  explicit SpanSteps(const SpanChoices& choices) : choices_(choices) {}

  // By operator. The spans are a plan's of the program.
  std::vector<SpanRole> places(const std::vector<PlanSpan>& spans) const;
  // Each once, in the order of the operators.
  std::vector<Step> from(const std::vector<SpanRole>& places) const;
  // After a step; without names.
  std::vector<PlanSpan> spans(std::vector<SpanRole> places, const Step& step) const;

 private:
  // What an operator's place comes to. `open`: a span may go on there.
  SpanRole settled(std::size_t op, SpanRole place, bool open) const;
  bool goes_on(std::size_t op, SpanRole place) const {
    return place != SpanRole::kOutside && choices_.joins_next(op);
  }
  Step step(const std::vector<SpanRole>& places, std::size_t op, SpanRole place) const;

  const SpanChoices& choices_;
};

}  // namespace ferry::plan
