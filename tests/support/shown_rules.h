// Which rules of the core a drawn test shows: a core without the rule is objected to.
//
// `ferry verify --mutants` leaves some mutants to these tests (verify/core/tested_mutants.h).
// tests/verify/core holds its table to these lists.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "shared/seam/rules.h"
#include "tests/support/objection.h"

namespace ferry::test {

struct ShownRules {
  std::string_view test;  // as gtest names it
  std::vector<Rule> rules;
};

inline const ShownRules kShownBySegments = {
    "FrameDrawn.EachRuleOfSavedTensorsShows",
    {Rule::kOuterInputs, Rule::kStopAtLast, Rule::kStopEarly, Rule::kTaskKey, Rule::kThreadKey,
     Rule::kGroupKey, Rule::kFreshOutside, Rule::kFreeUnpacked, Rule::kFreeUnneeded,
     Rule::kFreeAtEnd, Rule::kRefuseTwice, Rule::kForwardStream, Rule::kCheckRecompute,
     Rule::kSkipDead, Rule::kKeepChosen, Rule::kFirstChoice, Rule::kUnfinished}};
inline const ShownRules kShownByRegions = {
    "ReentrantDrawn.EachRuleOfItsBackwardShows",
    {Rule::kReplayRandom, Rule::kDetachReentrant, Rule::kRefuseReentrant}};
inline const ShownRules kShownByCaches = {"SelectiveDrawn.EachRuleOfWhatIsKeptShows",
                                          {Rule::kKeepOutputs, Rule::kCheckOutputs}};
inline const ShownRules kShownBySpans = {
    "SpanDrawn.EachRuleOfSavedTensorsShows",
    {Rule::kFreeUnpacked, Rule::kFreeAtEnd, Rule::kCheckVersion, Rule::kRefuseLate,
     Rule::kStopEarly}};
inline const ShownRules kShownByRecomputes = {
    "CheckpointerDrawn.EachRuleOfARecomputeShows",
    {Rule::kStopAtLast, Rule::kStopEarly, Rule::kFreshOutside, Rule::kGroupKey, Rule::kRefuseTwice,
     Rule::kReplayRandom, Rule::kCheckRecompute, Rule::kFreeUnneeded, Rule::kFreeUnpacked,
     Rule::kSkipDead, Rule::kKeepChosen}};
inline const ShownRules kShownByPlans = {"CheckpointerPlanDrawn.TheRuleOfASegmentsInputsShows",
                                         {Rule::kOuterInputs}};
inline const ShownRules kShownByChains = {"SequentialTest.TheRuleOfTheLastSegmentShows",
                                          {Rule::kLastPlain}};
inline const ShownRules kShownByLayouts = {"LayoutDrawn.EachRuleOfDeclarationsShows",
                                           {Rule::kPopStashed, Rule::kSpacesApart}};

inline std::array<const ShownRules*, 8> shown_rules() {
  return {&kShownBySegments, &kShownByRegions,    &kShownByCaches, &kShownBySpans,
          &kShownByPlans,    &kShownByRecomputes, &kShownByChains, &kShownByLayouts};
}

// The body of the test that shows them: the judge objects to a core without any one of them.
template <class Judge>
void expect_shown(const ShownRules& shown, const Judge& judge, std::uint64_t seeds = 300) {
  const testing::TestInfo& now = *testing::UnitTest::GetInstance()->current_test_info();
  EXPECT_EQ(shown.test, std::string(now.test_suite_name()) + "." + now.name());
  for (const Rule rule : shown.rules) {
    const auto without = [&](std::uint64_t seed) { return judge(seed, Rules::without(rule)); };
    EXPECT_NE(first_objection(without, seeds), "") << name(rule);
  }
}

}  // namespace ferry::test
