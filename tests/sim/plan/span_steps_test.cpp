#include "sim/plan/span_steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "formats/spans.h"
#include "sim/plan/keep_trace.h"
#include "tests/formats/forward.h"
#include "tests/sim/support/graphs.h"
#include "tests/sim/support/tiny.h"

namespace ferry::plan {
namespace {

using Spans = std::vector<PlanSpan>;

SpanChoices choices_of(const Program& program) {
  return SpanChoices(span_model(program, trace_keep(program, test::tiny_hardware())));
}

// Two stages and the loss.
Program three_operators() {
  return test::chain_of(test::random_stages(2, 1), std::int64_t{1} << 20, false);
}

TEST(SpanStepsTest, FromNoneEachOperatorMayBeginOne) {
  const SpanChoices choices = choices_of(three_operators());
  ASSERT_EQ(choices.operators(), 3u);
  const std::vector<Spans> found = SpanSteps(choices).from({});
  EXPECT_EQ(found,
            (std::vector<Spans>{
                {{.first = 0, .last = 0}}, {{.first = 1, .last = 1}}, {{.first = 2, .last = 2}}}));
}

TEST(SpanStepsTest, AnOperatorJoinsIsKeptLeavesOrParts) {
  const SpanChoices choices = choices_of(three_operators());
  const std::vector<Spans> found = SpanSteps(choices).from({{.first = 0, .last = 1}});
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

// Outside, first, next or kept, less those that mean the same: a next one or a kept one outside.
TEST(SpanStepsTest, AllSetsAreReached) {
  const Program program = three_operators();
  const SpanChoices choices = choices_of(program);
  const SpanSteps steps(choices);
  std::set<Spans> met = {{}};
  std::vector<Spans> open = {{}};
  while (!open.empty()) {
    const Spans here = open.back();
    open.pop_back();
    for (Spans& next : steps.from(here)) {
      EXPECT_NE(next, here);
      EXPECT_EQ(span_ranges(program, next).size(), next.size());
      if (met.insert(next).second) open.push_back(std::move(next));
    }
  }
  // After one outside there are two ways to go on, after another four: 2, 6, 20.
  EXPECT_EQ(met.size(), 20u);
}

// What an operator writes in place runs again with it (span_groups.h).
TEST(SpanStepsTest, WhatRunsTogetherIsNotParted) {
  const Program program =
      testing::program({testing::op("0", "2"), R"({"op":"w","in":[2],"out":[],"writes":[0]})",
                        testing::op("2", "3"), testing::op("3", "4")},
                       "[4]");
  const SpanChoices choices = choices_of(program);
  ASSERT_EQ(choices.operators(), 3u);
  const std::vector<Spans> found = SpanSteps(choices).from({});
  EXPECT_EQ(found,
            (std::vector<Spans>{
                {{.first = 0, .last = 1}}, {{.first = 2, .last = 2}}, {{.first = 3, .last = 3}}}));
  const std::vector<Spans> more =
      SpanSteps(choices).from({{.first = 0, .last = 1}, {.first = 2, .last = 2}});
  EXPECT_NE(std::ranges::find(more, Spans{{.first = 0, .last = 2}}), more.end());
}

}  // namespace
}  // namespace ferry::plan
