// Scripts for a selective checkpoint: the core does as the model says, and whoever breaks a rule of
// what is kept does not.
#include "verify/scripts/cache_script.h"

#include <gtest/gtest.h>

#include "shared/seam/rules.h"
#include "tests/verify/trials/verdicts.h"

namespace ferry::verify {
namespace {

TEST(CacheScriptTest, TheCoreDoesAsTheModelSays) {
  const auto verdict = script_objection(try_cache_script, {});
  EXPECT_FALSE(verdict) << to_string(*verdict);
}

TEST(CacheScriptTest, EachRuleOfWhatIsKeptShows) {
  for (const Rule rule : {Rule::kKeepOutputs, Rule::kCheckOutputs}) {
    EXPECT_TRUE(script_objection(try_cache_script, Rules::without(rule)))
        << kRuleNames[static_cast<std::size_t>(rule)];
  }
}

TEST(CacheScriptTest, AScriptWithoutStepsAsksForNothing) {
  EXPECT_FALSE(try_cache_script({7, 0}, {}));
}

}  // namespace
}  // namespace ferry::verify
