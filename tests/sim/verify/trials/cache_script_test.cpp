// Scripts for a selective checkpoint: the core does as the model says, and whoever breaks a rule of
// what is kept does not.
#include "sim/verify/trials/cache_script.h"

#include <gtest/gtest.h>

#include <optional>

#include "shared/seam/rules.h"

namespace ferry::verify {
namespace {

constexpr int kScripts = 400;

std::optional<Verdict> first_objection(const Rules& rules) {
  for (int number = 0; number < kScripts; ++number) {
    if (auto verdict = try_cache_script({number, kMostUses}, rules)) return verdict;
  }
  return std::nullopt;
}

TEST(CacheScriptTest, TheCoreDoesAsTheModelSays) {
  const auto verdict = first_objection({});
  EXPECT_FALSE(verdict) << to_string(*verdict);
}

TEST(CacheScriptTest, EachRuleOfWhatIsKeptShows) {
  for (const Rule rule : {Rule::kKeepOutputs, Rule::kCheckOutputs}) {
    EXPECT_TRUE(first_objection(Rules::without(rule)))
        << kRuleNames[static_cast<std::size_t>(rule)];
  }
}

TEST(CacheScriptTest, AScriptWithoutStepsAsksForNothing) {
  EXPECT_FALSE(try_cache_script({7, 0}, {}));
}

}  // namespace
}  // namespace ferry::verify
