// Scripts for a segment: the core does as the model says, and whoever breaks a rule of saved
// tensors does not.
#include "verify/scripts/segment_script.h"

#include <gtest/gtest.h>

#include "shared/seam/rules.h"
#include "tests/verify/trials/verdicts.h"

namespace ferry::verify {
namespace {

constexpr auto kSegmentScript = [](const DrawnUses& uses, const Rules& rules) {
  return try_segment_script(uses, rules);
};

TEST(SegmentScriptTest, TheCoreDoesAsTheModelSays) {
  const auto verdict = script_objection(kSegmentScript, {});
  EXPECT_FALSE(verdict) << to_string(*verdict);
}

TEST(SegmentScriptTest, EachRuleOfSavedTensorsShows) {
  for (const Rule rule :
       {Rule::kOuterInputs, Rule::kStopAtLast, Rule::kStopEarly, Rule::kTaskKey, Rule::kThreadKey,
        Rule::kGroupKey, Rule::kFreshOutside, Rule::kFreeUnpacked, Rule::kFreeUnneeded,
        Rule::kFreeAtEnd, Rule::kRefuseTwice, Rule::kForwardStream, Rule::kCheckRecompute,
        Rule::kSkipDead, Rule::kKeepChosen, Rule::kFirstChoice, Rule::kUnfinished}) {
    EXPECT_TRUE(script_objection(kSegmentScript, Rules::without(rule)))
        << kRuleNames[static_cast<std::size_t>(rule)];
  }
}

TEST(SegmentScriptTest, AScriptWithoutStepsHasForwardAlone) {
  EXPECT_FALSE(try_segment_script({7, 0}, {}));
}

}  // namespace
}  // namespace ferry::verify
