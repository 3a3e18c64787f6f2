// The generators for users' own tests: steps that the scheduler was made for, which shrink.
#include "ferry/verify_rapidcheck.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <sstream>
#include <stdexcept>
#include <string>

#include "tests/verify/hunt/schedulers.h"

namespace ferry::verify {
namespace {

using test::sends;
using test::Wrong;

TEST(VerifyRapidcheckProp, WhatIsRightIsClean) {
  EXPECT_TRUE(rc::check("no oracle objects", [] {
    const HuntedStep step = *gen::step(sends());
    RC_ASSERT(!judge(sends(), step));
    RC_CLASSIFY(step.recipe.segments, "checkpoints");
    RC_CLASSIFY(step.recipe.layers.size() > 5, "large");
  }));
}

TEST(VerifyRapidcheckProp, StepsHaveWhatTheSchedulerWasMadeFor) {
  HuntedScheduler scheduler = sends();
  scheduler.without = {Feature::kCheckpoints, Feature::kForwardsAhead};
  EXPECT_TRUE(rc::check("neither", [&scheduler] {
    const HuntedStep step = *gen::step(scheduler);
    RC_ASSERT(!step.recipe.segments);
    RC_ASSERT(step.recipe.order == MicrobatchOrder::kFbfb);
  }));
}

// As far as one layer, by RapidCheck itself.
TEST(VerifyRapidcheckProp, AStepThatFailsShrinks) {
  const HuntedScheduler wrong = sends(Wrong::kWaitsForNothing);
  const auto fails = [&wrong](const HuntedStep& step) { return judge(wrong, step).has_value(); };
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    auto shrinkable = gen::step(wrong)(rc::Random(seed), 100);
    if (!fails(shrinkable.value())) continue;
    for (bool smaller = true; smaller;) {
      smaller = false;
      auto shrinks = shrinkable.shrinks();
      while (const auto next = shrinks.next()) {
        if (!fails(next->value())) continue;
        shrinkable = *next;
        smaller = true;
        break;
      }
    }
    const HuntedStep least = shrinkable.value();
    EXPECT_EQ(least.recipe.layers.size(), 1u) << least;
    std::ostringstream shown;
    showValue(least, shown);
    EXPECT_NE(shown.str().find("1 layer: linear"), std::string::npos) << shown.str();
    return;
  }
  FAIL() << "none failed";
}

TEST(VerifyRapidcheckProp, ProgramsOfItsOwnAreNoSteps) {
  HuntedScheduler scheduler = sends();
  scheduler.program = [](std::uint64_t) { return Program(); };
  EXPECT_THROW(step_of(scheduler, draw_step(1)), std::invalid_argument);
}

}  // namespace
}  // namespace ferry::verify
