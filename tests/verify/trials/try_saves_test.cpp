// What is drawn of saved tensors by hand tells a core that breaks a rule from one that does not.
#include "verify/trials/try_saves.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "tests/verify/trials/verdicts.h"
#include "verify/trials/try_exempt.h"

namespace ferry::verify {
namespace {

constexpr std::uint64_t kLives = 300;

// What is said of the first life that is not as it must be; empty: all are.
std::string first_words(const Rules& rules) {
  for (std::uint64_t number = 0; number < kLives; ++number) {
    const std::string said = words(try_saves(number, rules));
    if (!said.empty()) return said;
  }
  return "";
}

TEST(TrySaves, OfTheCoreNothingIsSaid) {
  EXPECT_EQ(first_words({}), "");
  EXPECT_EQ(words(try_exempt()), "");
}

class TrySavesRule : public testing::TestWithParam<Rule> {};

TEST_P(TrySavesRule, SomeLifeShowsThatItIsBroken) {
  EXPECT_NE(first_words(Rules::without(GetParam())), "");
}

INSTANTIATE_TEST_SUITE_P(Offload, TrySavesRule,
                         testing::Values(Rule::kKeepSource, Rule::kBoundStash, Rule::kHoldTarget,
                                         Rule::kBoundReloads, Rule::kCountEscapes,
                                         Rule::kReleaseLate, Rule::kEndOfTask, Rule::kForget,
                                         Rule::kVersioned, Rule::kCovers, Rule::kShare,
                                         Rule::kShareTarget, Rule::kCheckVersion, Rule::kExempt,
                                         Rule::kKeepKept, Rule::kOtherDevice, Rule::kCopyPart,
                                         Rule::kUseSource));

TEST(TryExempt, SeesThatWhatIsExemptMoves) {
  EXPECT_EQ(words(try_exempt(Rules::without(Rule::kExempt))), "accounts: an exempt tensor moved");
}

}  // namespace
}  // namespace ferry::verify
