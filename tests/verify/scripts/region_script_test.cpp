// Scripts for a reentrant region: the core does as the model says, and whoever breaks a rule of its
// backward does not.
#include "verify/scripts/region_script.h"

#include <gtest/gtest.h>

#include "shared/seam/rules.h"
#include "tests/verify/trials/verdicts.h"

namespace ferry::verify {
namespace {

TEST(RegionScriptTest, TheCoreDoesAsTheModelSays) {
  const auto verdict = script_objection(try_region_script, {});
  EXPECT_FALSE(verdict) << to_string(*verdict);
}

TEST(RegionScriptTest, EachRuleOfItsBackwardShows) {
  for (const Rule rule : {Rule::kReplayRandom, Rule::kDetachReentrant, Rule::kRefuseReentrant}) {
    EXPECT_TRUE(script_objection(try_region_script, Rules::without(rule)))
        << kRuleNames[static_cast<std::size_t>(rule)];
  }
}

TEST(RegionScriptTest, AScriptWithoutStepsHasForwardAlone) {
  EXPECT_FALSE(try_region_script({7, 0}, {}));
}

}  // namespace
}  // namespace ferry::verify
