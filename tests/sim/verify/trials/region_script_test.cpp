// Scripts for a reentrant region: the core does as the model says, and whoever breaks a rule of its
// backward does not.
#include "sim/verify/trials/region_script.h"

#include <gtest/gtest.h>

#include <optional>

#include "shared/seam/rules.h"

namespace ferry::verify {
namespace {

constexpr int kScripts = 400;

std::optional<Verdict> first_objection(const Rules& rules) {
  for (int number = 0; number < kScripts; ++number) {
    if (auto verdict = try_region_script({number, kMostUses}, rules)) return verdict;
  }
  return std::nullopt;
}

TEST(RegionScriptTest, TheCoreDoesAsTheModelSays) {
  const auto verdict = first_objection({});
  EXPECT_FALSE(verdict) << to_string(*verdict);
}

TEST(RegionScriptTest, EachRuleOfItsBackwardShows) {
  for (const Rule rule : {Rule::kReplayRandom, Rule::kDetachReentrant, Rule::kRefuseReentrant}) {
    EXPECT_TRUE(first_objection(Rules::without(rule)))
        << kRuleNames[static_cast<std::size_t>(rule)];
  }
}

TEST(RegionScriptTest, AScriptWithoutStepsHasForwardAlone) {
  EXPECT_FALSE(try_region_script({7, 0}, {}));
}

}  // namespace
}  // namespace ferry::verify
