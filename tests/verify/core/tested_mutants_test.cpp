// The mutants that `ferry verify --mutants` leaves to unit tests: each such test shows the rule.
#include "verify/core/tested_mutants.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/support/shown_rules.h"
#include "verify/mutants/mutants.h"

namespace ferry::verify {
namespace {

bool is_shown(const TestedMutant& row) {
  const auto shows = [&row](const test::ShownRules* shown) {
    return shown->test == row.test && std::ranges::any_of(shown->rules, [&row](Rule rule) {
             return row.mutant == "rule: " + std::string(name(rule));
           });
  };
  return std::ranges::any_of(test::shown_rules(), shows);
}

TEST(TestedMutants, EachHasATestThatShowsItsRule) {
  for (const TestedMutant& row : kTestedMutants) EXPECT_TRUE(is_shown(row)) << row.mutant;
}

TEST(TestedMutants, AreMutants) {
  for (const TestedMutant& row : kTestedMutants) {
    EXPECT_TRUE(std::ranges::any_of(all_mutants(), [&row](const Mutant& mutant) {
      return mutant.name == row.mutant;
    })) << row.mutant;
  }
}

TEST(TestedMutants, AnotherTestOrAnotherRuleIsNotShown) {
  EXPECT_FALSE(is_shown({"rule: skip dead", "FrameDrawn.NoSuchTest"}));
  EXPECT_FALSE(is_shown({"rule: no such rule", test::kShownBySegments.test}));
}

}  // namespace
}  // namespace ferry::verify
