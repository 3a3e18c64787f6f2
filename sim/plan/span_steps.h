// The sets of spans that are one step from another: one operator begins a span, or is in it and
// runs again, or is in it and kept, or is outside, and was something else before.
//
// What spans.h of formats says of a plan's spans holds for them: they are in order, and none parts
// what runs together. A kept operator that begins a span is outside as well, and is written so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "formats/plan.h"
#include "sim/plan/span_table.h"

namespace ferry::plan {

class SpanSteps {
 public:
  // The choices must outlive it.
  explicit SpanSteps(const SpanChoices& choices) : choices_(choices) {}

  // Each once, none of them `spans`, in the order of the operators. The spans are a plan's of the
  // program, without names.
  std::vector<std::vector<PlanSpan>> from(const std::vector<PlanSpan>& spans) const;

 private:
  // Of the operators as the choices have them.
  enum class Place : std::uint8_t { kOutside, kFirst, kNext, kKept };

  std::vector<Place> places(const std::vector<PlanSpan>& spans) const;
  // Places as they are meant: a span cannot go on where there is none.
  std::vector<Place> settled(std::vector<Place> places) const;
  std::vector<PlanSpan> spans(const std::vector<Place>& places) const;

  const SpanChoices& choices_;
};

}  // namespace ferry::plan
