// Where a plan's spans lie in a program's statements.
#include "formats/spans.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "tests/formats/forward.h"

namespace ferry {
namespace {

using testing::Lines;
using testing::node;
using testing::op;
using testing::program;

std::string save(int id, const std::string& slots) {
  return "{\"save\":" + std::to_string(id) + ",\"slots\":[" + slots + "]}";
}

// Slots 0 and 1 are globals. Operator 1 is between its node and what that saves.
const Lines kThree = {op("0,1", "2"),      // 0
                      R"({"free":[]})",    // 1
                      node("0", "3", ""),  // 2
                      op("2", "4"),        // 3
                      save(0, "4"),        // 4
                      R"({"free":[2]})",   // 5
                      op("4", "5")};       // 6

std::string refusal(const Lines& forward, const std::vector<PlanSpan>& spans) {
  try {
    span_ranges(program(forward, "[5]"), spans);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(SpansTest, AnOperatorBeginsWithItsNodeAndEndsWhereTheNextOneBegins) {
  const auto found = operator_ranges(program(kThree, "[5]"));
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].begin, 0u);
  EXPECT_EQ(found[0].end, 2u);
  EXPECT_EQ(found[1].op, 3u);
  EXPECT_EQ(found[1].begin, 2u);
  EXPECT_EQ(found[1].end, 6u);
  EXPECT_EQ(found[2].begin, 6u);
}

TEST(SpansTest, WhatWasGivenIsNoOperator) {
  Program given = program(kThree, "[5]");
  std::get<Op>(given.codes[1].statements[3].action).name = kGivenOp;
  const auto found = operator_ranges(given);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[1].op, 6u);
  EXPECT_EQ(span_ranges(given, {{0, 1}})[0].end, 7u) << "it may be in a span";
}

TEST(SpansTest, ASpanGoesFromItsFirstOperatorToItsLast) {
  const auto found =
      span_ranges(program(kThree, "[5]"), {{.first = 0, .last = 1, .keep = {1}}, {2, 2}});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].begin, 0u);
  EXPECT_EQ(found[0].end, 6u);
  EXPECT_EQ(found[0].keep, std::vector<std::size_t>{3}) << "its statement";
  EXPECT_EQ(found[1].begin, 6u);
}

// Random programs make a node when its operator has run.
TEST(SpansTest, ANodeMadeAfterItsOperatorIsThatOnes) {
  const Lines after = {op("0,1", "2"), node("0", "2", "1"), op("2", "5")};
  const auto found = operator_ranges(program(after, "[5]"));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].end, 2u);
  EXPECT_EQ(found[1].begin, 2u);
}

TEST(SpansTest, AnExclusionPartsTwoOperators) {
  Lines parted = kThree;
  parted[1] = R"({"exclude":"begin"})";
  parted.push_back(R"({"exclude":"end"})");
  const auto found = operator_ranges(program(parted, "[5]"));
  EXPECT_FALSE(found[0].joins_next);
  EXPECT_TRUE(found[1].joins_next);
  EXPECT_EQ(refusal(parted, {{0, 1}}),
            "the span of operators 0 to 1 has a call, a backward or an exclusion in it");
  EXPECT_EQ(refusal(parted, {{1, 2}}), "") << "it lies within the exclusion";
}

TEST(SpansTest, SpansThatTheForwardDoesNotHaveAreRefused) {
  const std::string order = ": the forward has 3 operators, and spans are in order";
  EXPECT_EQ(refusal(kThree, {{1, 3}}), "the span of operators 1 to 3" + order);
  EXPECT_EQ(refusal(kThree, {{1, 1}, {1, 2}}), "the span of operators 1 to 2" + order);
  EXPECT_EQ(refusal(kThree, {{2, 1}}), "the span of operators 2 to 1" + order);
  EXPECT_EQ(refusal(kThree, {{.first = 1, .last = 1, .keep = {2}}}),
            "the span of operators 1 to 1 has no operator 2 to keep");
  EXPECT_EQ(refusal(kThree, {{1, 1, "b", "a"}}),
            "the span of operators 1 to 1: operator 1 is a in the program, not b");
}

TEST(SpansTest, InnerSpansLieWithinTheirs) {
  PlanSpan outer{.first = 0, .last = 2, .keep = {0}};
  outer.inner = {{.first = 1, .last = 2, .keep = {1}}};
  outer.inner[0].inner = {{2, 2}};
  const auto found = span_ranges(program(kThree, "[5]"), {outer});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].keep, std::vector<std::size_t>{0}) << "what an inner one keeps is its own";
  ASSERT_EQ(found[0].inner.size(), 1u);
  const SpanRange& inner = found[0].inner[0];
  EXPECT_EQ(inner.begin, 2u);
  EXPECT_EQ(inner.end, 7u);
  EXPECT_EQ(inner.keep, std::vector<std::size_t>{3});
  ASSERT_EQ(inner.inner.size(), 1u);
  EXPECT_EQ(inner.inner[0].begin, 6u);
}

TEST(SpansTest, InnerSpansThatReachBeyondAreRefused) {
  const auto refused = [](std::vector<PlanSpan> inner) {
    return refusal(kThree, {{.first = 1, .last = 2, .inner = std::move(inner)}});
  };
  EXPECT_EQ(refused({{1, 1}, {2, 2}}), "");
  const std::string within = ": inner spans are in order, and within operators 1 to 2";
  EXPECT_EQ(refused({{0, 1}}), "the span of operators 0 to 1" + within);
  EXPECT_EQ(refused({{2, 3}}), "the span of operators 2 to 3" + within);
  EXPECT_EQ(refused({{2, 2}, {1, 1}}), "the span of operators 1 to 1" + within);
  EXPECT_EQ(refused({{1, 1, "b", ""}}),
            "the span of operators 1 to 1: operator 1 is a in the program, not b");
  PlanSpan deep{1, 1};
  for (std::size_t level = 1; level < kSpanDepth; ++level) {
    PlanSpan around{1, 1};
    around.inner = {std::move(deep)};
    deep = std::move(around);
  }
  EXPECT_EQ(refusal(kThree, {deep}), "");
  EXPECT_EQ(refused({deep}), "spans are nested more than 64 deep");
}

TEST(SpansTest, AForwardThatDiffersWhenItRunsAgainHasNone) {
  Lines hidden = kThree;
  hidden.insert(hidden.begin() + 1, R"({"when":"recomputing","count":1})");
  EXPECT_EQ(refusal(hidden, {{1, 1}}), "the program's forward has no spans of operators");
}

}  // namespace
}  // namespace ferry
