// Scripts for a span: the core does as the model says, and whoever breaks a rule of saved tensors
// does not.
#include "verify/scripts/span_script.h"

#include <gtest/gtest.h>

#include "shared/seam/rules.h"
#include "tests/verify/trials/verdicts.h"

namespace ferry::verify {
namespace {

constexpr auto kSpanScript = [](const DrawnUses& uses, const Rules& rules) {
  return try_span_script(uses, rules);
};

TEST(SpanScriptTest, TheCoreDoesAsTheModelSays) {
  const auto verdict = script_objection(kSpanScript, {});
  EXPECT_FALSE(verdict) << to_string(*verdict);
}

TEST(SpanScriptTest, EachRuleOfSavedTensorsShows) {
  for (const Rule rule : {Rule::kFreeUnpacked, Rule::kFreeAtEnd, Rule::kCheckVersion,
                          Rule::kRefuseLate, Rule::kStopEarly}) {
    EXPECT_TRUE(script_objection(kSpanScript, Rules::without(rule)))
        << kRuleNames[static_cast<std::size_t>(rule)];
  }
}

TEST(SpanScriptTest, AScriptWithoutStepsHasNoOperators) {
  EXPECT_FALSE(try_span_script({7, 0}, {}));
}

}  // namespace
}  // namespace ferry::verify
