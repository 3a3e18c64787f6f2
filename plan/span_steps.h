// The neighbourhood of the local searches (span_climb.cpp, span_walk.cpp): the sets of spans that
// differ from a given set in the role of one operator. An operator is outside all spans, or the
// first of a span, or a later one, or in a span and kept.
//
// The sets keep the rules of a plan's spans (formats/spans.h): spans are in order, and none splits
// a group. A kept operator at the begin of a span has the same effect as one outside, and is
// written as outside.
//
// A step is stored as the roles that it changes, because it changes only few operators. A full set
// of spans is made only for the steps that are tried.
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
  // The role of an operator (of SpanChoices).
  enum class SpanRole : std::uint8_t { kOutside, kFirst, kNext, kKept };
  static bool runs(SpanRole place) { return place == SpanRole::kFirst || place == SpanRole::kNext; }
  // Operators in order, with their new roles.
  using Step = std::vector<std::pair<std::size_t, SpanRole>>;

  // The choices must outlive it.
  explicit SpanSteps(const SpanChoices& choices) : choices_(choices) {}

  // Returns the role of each operator in a plan's spans.
  std::vector<SpanRole> places(const std::vector<PlanSpan>& spans) const;
  // Returns all steps from these roles, without duplicates, in the order of the operators.
  std::vector<Step> from(const std::vector<SpanRole>& places) const;
  // Returns the spans after a step. The names of their operators are not set.
  std::vector<PlanSpan> spans(std::vector<SpanRole> places, const Step& step) const;

 private:
  // Returns the valid role nearest to `place`. `open` is true if a span may continue at `op`.
  SpanRole settled(std::size_t op, SpanRole place, bool open) const;
  bool goes_on(std::size_t op, SpanRole place) const {
    return place != SpanRole::kOutside && choices_.joins_next(op);
  }
  Step step(const std::vector<SpanRole>& places, std::size_t op, SpanRole place) const;

  const SpanChoices& choices_;
};

}  // namespace ferry::plan
