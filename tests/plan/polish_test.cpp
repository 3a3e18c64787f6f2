// A plan that does more than it must does less.
#include "plan/polish.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan/planner.h"
#include "tests/plan/support/planned.h"

namespace ferry::plan {
namespace {

class PolishTest : public ::testing::Test {
 protected:
  PolishTest() { problem_.survey = survey(problem_.program, card_); }

  const Hardware card_ = [] {
    Hardware card = test::tiny_hardware();
    card.host_memory_bytes = std::int64_t{1} << 40;
    return card;
  }();
  const Program program_ = test::segmented({{}, {}, {}}, {.inner_elements = 1 << 22});
  Problem problem_{program_, with_segments(program_), card_, {}, {}};
  Floors floors_{problem_.program, card_, trace_keep(problem_.program, card_)};
  Trials trials_{problem_, floors_, nullptr, nullptr};
  const Limits everything_{kUnlimited, kUnlimited, kUnlimited};
};

TEST_F(PolishTest, EachPlanDoesOneThingLess) {
  Mix mix = recompute_all(problem_.survey).mix;
  mix.input_moves[0][0] = true;
  const Candidate all = settled({}, mix, problem_.survey);
  ASSERT_TRUE(all.options);
  const std::vector<Candidate> less = with_less(all, problem_.survey);
  ASSERT_EQ(less.size(), 4u);
  for (std::size_t s = 0; s < 3; ++s) {
    for (std::size_t other = 0; other < 3; ++other) {
      EXPECT_EQ(less[s].mix.recompute[other], other != s);
    }
  }
  EXPECT_FALSE(less[3].options);  // nothing moves
  EXPECT_EQ(less[3].mix.recompute, mix.recompute);
}

TEST_F(PolishTest, WithMemoryForAllNothingIsLeftOfAPlan) {
  trials_.of("start", {recompute_all(problem_.survey)});
  const Cost start = trials_.best(everything_)->cost;
  polish("polish", problem_, everything_, 10, 1, trials_);
  const Tried* best = trials_.best(everything_);
  EXPECT_LT(best->cost.step_ns, start.step_ns);
  EXPECT_EQ(best->candidate.mix.recompute, std::vector<bool>(3, false));
}

TEST_F(PolishTest, WhatFitsStillFits) {
  const Cost start = trials_.of("start", {recompute_all(problem_.survey)}).front();
  const Limits tight{start.device_reserved_bytes, kUnlimited, kUnlimited};
  polish("polish", problem_, tight, 10, 1, trials_);
  EXPECT_LE(trials_.best(tight)->cost.device_reserved_bytes, tight.budget_bytes);
  EXPECT_LE(trials_.best(tight)->cost.step_ns, start.step_ns);
}

}  // namespace
}  // namespace ferry::plan
