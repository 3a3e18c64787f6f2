// Scripts for a span: the core does as the model says, and whoever breaks a rule of saved tensors
// does not.
#include "sim/verify/trials/span_script.h"

#include <gtest/gtest.h>

#include <optional>

#include "shared/seam/rules.h"

namespace ferry::verify {
namespace {

constexpr int kScripts = 400;

std::optional<Verdict> first_objection(const Rules& rules) {
  for (int number = 0; number < kScripts; ++number) {
    if (auto verdict = try_span_script({number, kMostUses}, rules)) return verdict;
  }
  return std::nullopt;
}

TEST(SpanScriptTest, TheCoreDoesAsTheModelSays) {
  const auto verdict = first_objection({});
  EXPECT_FALSE(verdict) << to_string(*verdict);
}

TEST(SpanScriptTest, EachRuleOfSavedTensorsShows) {
  for (const Rule rule : {Rule::kFreeUnpacked, Rule::kFreeAtEnd, Rule::kCheckVersion,
                          Rule::kRefuseLate, Rule::kStopEarly}) {
    EXPECT_TRUE(first_objection(Rules::without(rule)))
        << kRuleNames[static_cast<std::size_t>(rule)];
  }
}

TEST(SpanScriptTest, AScriptWithoutStepsHasNoOperators) {
  EXPECT_FALSE(try_span_script({7, 0}, {}));
}

}  // namespace
}  // namespace ferry::verify
