#include "plan/span_steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "formats/spans.h"
#include "plan/keep_trace.h"
#include "tests/formats/forward.h"
#include "tests/sim/support/graphs.h"
#include "tests/sim/support/tiny.h"

namespace ferry::plan {
namespace {

using Spans = std::vector<PlanSpan>;

SpanChoices choices_of(const Program& program) {
  return SpanChoices(span_model(program, trace_keep(program, test::tiny_hardware())));
}

std::vector<Spans> from(const SpanChoices& choices, const Spans& spans) {
  const SpanSteps steps(choices);
  const std::vector<SpanSteps::SpanRole> here = steps.places(spans);
  std::vector<Spans> found;
  for (const SpanSteps::Step& step : steps.from(here)) found.push_back(steps.spans(here, step));
  return found;
}

// Two stages and the loss.
Program three_operators() {
  return test::chain_of(test::random_stages(2, 1), std::int64_t{1} << 20, false);
}

TEST(SpanStepsTest, FromNoneEachOperatorMayBeginOne) {
  const SpanChoices choices = choices_of(three_operators());
  ASSERT_EQ(choices.operators(), 3u);
  const std::vector<Spans> found = from(choices, {});
  EXPECT_EQ(found,
            (std::vector<Spans>{
                {{.first = 0, .last = 0}}, {{.first = 1, .last = 1}}, {{.first = 2, .last = 2}}}));
}

TEST(SpanStepsTest, AnOperatorJoinsIsKeptLeavesOrParts) {
  const SpanChoices choices = choices_of(three_operators());
  const std::vector<Spans> found = from(choices, {{.first = 0, .last = 1}});
  EXPECT_EQ(found, (std::vector<Spans>{
                       {{.first = 1, .last = 1}},
                       {{.first = 0, .last = 0}},
                       {{.first = 0, .last = 0}, {.first = 1, .last = 1}},
                       {{.first = 0, .last = 1, .first_op = "", .last_op = "", .keep = {1}}},
                       {{.first = 0, .last = 1}, {.first = 2, .last = 2}},
                       {{.first = 0, .last = 2}},
                       {{.first = 0, .last = 2, .first_op = "", .last_op = "", .keep = {2}}},
                   }));
}

// The steps reach all combinations of the four roles, except those with the same meaning: after an
// operator outside, a next one is a first one, and a kept one is outside.
TEST(SpanStepsTest, AllSetsAreReached) {
  const Program program = three_operators();
  const SpanChoices choices = choices_of(program);
  std::set<Spans> met = {{}};
  std::vector<Spans> open = {{}};
  while (!open.empty()) {
    const Spans here = open.back();
    open.pop_back();
    for (Spans& next : from(choices, here)) {
      EXPECT_NE(next, here);
      EXPECT_EQ(span_ranges(program, next).size(), next.size());
      if (met.insert(next).second) open.push_back(std::move(next));
    }
  }
  // After an operator outside there are two roles, after any other four: 2, 6, 20 sets.
  EXPECT_EQ(met.size(), 20u);
}

// An in-place operator is recomputed together with the maker of its storage (span_groups.h).
TEST(SpanStepsTest, WhatRunsTogetherIsNotParted) {
  const Program program =
      testing::program({testing::op("0", "2"), R"({"op":"w","in":[2],"out":[],"writes":[0]})",
                        testing::op("2", "3"), testing::op("3", "4")},
                       "[4]");
  const SpanChoices choices = choices_of(program);
  ASSERT_EQ(choices.operators(), 3u);
  const std::vector<Spans> found = from(choices, {});
  EXPECT_EQ(found,
            (std::vector<Spans>{
                {{.first = 0, .last = 1}}, {{.first = 2, .last = 2}}, {{.first = 3, .last = 3}}}));
  const std::vector<Spans> more = from(choices, {{.first = 0, .last = 1}, {.first = 2, .last = 2}});
  EXPECT_NE(std::ranges::find(more, Spans{{.first = 0, .last = 2}}), more.end());
}

// The steps give each operator every possible role. Behind it, only operators that continued its
// span change: a kept one, and the next one.
TEST(SpanStepsTest, AStepIsOfAnOperatorAndOfWhatWentOnFromIt) {
  const Program program = test::chain_of(test::random_stages(40, 7), std::int64_t{1} << 20, false);
  const SpanChoices choices = choices_of(program);
  const SpanSteps steps(choices);
  const Spans spans = {{.first = 3, .last = 9, .first_op = "", .last_op = "", .keep = {5, 9}},
                       {.first = 10, .last = 30}};
  const std::vector<SpanSteps::SpanRole> here = steps.places(spans);
  EXPECT_EQ(steps.spans(here, {}), spans);
  std::set<std::size_t> first;
  for (const SpanSteps::Step& step : steps.from(here)) {
    first.insert(step.front().first);
    EXPECT_LE(step.size(), 3u);
    const std::vector<SpanSteps::SpanRole> then = steps.places(steps.spans(here, step));
    for (std::size_t op = 0; op < here.size(); ++op) {
      const auto changed = std::ranges::find(step, op, &SpanSteps::Step::value_type::first);
      EXPECT_EQ(then[op], changed != step.end() ? changed->second : here[op]) << op;
    }
  }
  EXPECT_EQ(first.size(), choices.operators());
}

}  // namespace
}  // namespace ferry::plan
