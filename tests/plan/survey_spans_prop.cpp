// Random programs with random spans, and offload of random tensors of the survey: gradients are
// those of the plain program, and no checker finds a hazard.
#include "plan/survey.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "plan/planner.h"
#include "tests/plan/support/spanned.h"
#include "tests/sim/support/tiny.h"
#include "verify/programs/random_program.h"

namespace ferry::plan {
namespace {

TEST(SurveySpansProp, NothingChangesButTimeAndMemory) {
  const Hardware card = test::tiny_hardware();
  int spanned = 0, replayed = 0, moved = 0, refused = 0;
  for (std::uint64_t number = 0; number < 600; ++number) {
    choices::Draws draws(41, number);
    const Program program = verify::make_program(verify::draw_recipe(draws, verify::Sizes::kSmall));
    const std::vector<PlanSpan> spans = test::draw_spans(draws, program);
    if (spans.empty()) continue;
    const sim::Simulation plain = sim::simulate(program, card, {});
    if (!plain.errors.empty()) continue;
    ++spanned;
    const int keeps = draws.in(1, 4);
    const sim::SimulationOptions options =
        test::spanned(program, card, spans, CoreOptions(), [&] { return !draws.one_in(keeps); });
    const sim::Simulation ours = sim::simulate(program, card, options);
    if (!ours.errors.empty()) {
      // A kept result is an outside input of the replay. If it was written since, the replay is
      // rejected with an error.
      const std::string& message = ours.errors.front().message;
      ASSERT_NE(message.find("modified by an inplace operation"), message.npos) << number;
      ++refused;
      continue;
    }
    ASSERT_TRUE(ours.hazards.empty()) << number;
    ASSERT_FALSE(ours.leftovers.any()) << number;
    ASSERT_EQ(ours.gradients, plain.gradients) << number;
    replayed += ours.replays.calls_replayed > 0;
    moved += ours.d2h_bytes > 0;
  }
  EXPECT_GT(spanned, 100);
  EXPECT_LT(refused, spanned / 10);
  EXPECT_GT(replayed, 50);
  EXPECT_GT(moved, 50);
}

}  // namespace
}  // namespace ferry::plan
