#include "shared/seam/rules.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <set>
#include <string_view>

namespace ferry {
namespace {

Rule rule(std::size_t number) { return static_cast<Rule>(number); }

TEST(Rules, NamesAreDistinct) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kRules; ++i) {
    EXPECT_FALSE(name(rule(i)).empty());
    EXPECT_TRUE(names.insert(name(rule(i))).second) << name(rule(i));
  }
}

TEST(Rules, AllHoldUnlessOneIsBroken) {
  for (std::size_t i = 0; i < kRules; ++i) EXPECT_TRUE(Rules().holds(rule(i)));
}

TEST(Rules, AMutantBreaksOneRuleAlone) {
  for (std::size_t broken = 0; broken < kRules; ++broken) {
    const Rules mutant = Rules::without(rule(broken));
    for (std::size_t i = 0; i < kRules; ++i) EXPECT_EQ(mutant.holds(rule(i)), i != broken);
  }
}

}  // namespace
}  // namespace ferry
