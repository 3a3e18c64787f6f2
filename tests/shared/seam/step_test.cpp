#include "shared/seam/step.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <set>
#include <string>
#include <string_view>

namespace ferry {
namespace {

Step step(std::size_t number) { return static_cast<Step>(number); }

TEST(Steps, NamesAreDistinct) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kSteps; ++i) {
    EXPECT_FALSE(name(step(i)).empty());
    EXPECT_TRUE(names.insert(name(step(i))).second) << name(step(i));
  }
}

TEST(Steps, TheProgramsOwnCallsServeNoInvariant) {
  EXPECT_EQ(info(Step::kUser).kind, StepKind::kNone);
  EXPECT_TRUE(info(Step::kUser).invariant.empty());
}

// "2: why", or "2, 3, 4: why", of the fourteen.
TEST(Steps, EveryStepOfTheCoreNamesItsInvariants) {
  for (std::size_t i = 1; i < kSteps; ++i) {
    const std::string text(info(step(i)).invariant);
    EXPECT_NE(info(step(i)).kind, StepKind::kNone) << name(step(i));
    const std::size_t colon = text.find(": ");
    ASSERT_NE(colon, std::string::npos) << name(step(i));
    EXPECT_GT(text.size(), colon + 2) << name(step(i));
    std::size_t at = 0;
    while (at < colon) {
      std::size_t digits = 0;
      const int invariant = std::stoi(text.substr(at, colon - at), &digits);
      EXPECT_GE(invariant, 1) << name(step(i));
      EXPECT_LE(invariant, 14) << name(step(i));
      at += digits + 2;
    }
  }
}

}  // namespace
}  // namespace ferry
