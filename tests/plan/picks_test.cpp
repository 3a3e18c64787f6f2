// The rules that pick one of several simulated candidates.
#include "plan/picks.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

namespace ferry::plan {
namespace {

constexpr Limits kLimits = {.budget_bytes = 100, .host_bytes = 1000, .keep_bytes = 200};
// One byte per ns to the host, two bytes per ns back.
constexpr Link kLink = {.h2d_alone = 2'000, .d2h_alone = 1'000};

Cost cost(sim::Time step_ns, std::int64_t reserved, std::int64_t out = 0, std::int64_t back = 0) {
  Cost cost;
  cost.step_ns = step_ns;
  cost.device_reserved_bytes = reserved;
  cost.out_bytes = out;
  cost.back_bytes = back;
  return cost;
}
Cost failing(Cost cost) {
  cost.fails = true;
  return cost;
}

TEST(PicksTest, TheFastestThatFits) {
  EXPECT_EQ(pick_fastest({cost(5, 150), cost(9, 100), cost(8, 90), cost(8, 80)}, kLimits), 3u);
}

TEST(PicksTest, WhereNothingFitsTheLeastMemory) {
  EXPECT_EQ(pick_fastest({cost(5, 150), cost(9, 120), cost(8, 120)}, kLimits), 2u);
}

// A candidate that pins more memory than the host has cannot run, even if it needs little memory on
// the device.
TEST(PicksTest, WhereNothingFitsTheLeastOfWhatTheHostHasRoomFor) {
  Cost pins = cost(5, 110);
  pins.host_peak_bytes = kLimits.host_bytes + 1;
  EXPECT_EQ(pick_fastest({pins, cost(9, 150), cost(9, 140)}, kLimits), 2u);
  pins.device_reserved_bytes = 50;
  EXPECT_EQ(pick_fastest({pins, cost(9, 150)}, kLimits), 1u);
  EXPECT_EQ(pick_full_speed({pins, cost(9, 150)}, kLimits, 5, kLink), 1u);
  EXPECT_EQ(pick_fastest({pins, failing(cost(9, 150))}, kLimits), 0u);
}

// A recompute that raises ends the backward early. Its step looks fast and small, but means
// nothing.
TEST(PicksTest, ARunWithErrorsIsNoCandidate) {
  EXPECT_EQ(pick_fastest({cost(9, 100), failing(cost(3, 10))}, kLimits), 0u);
  EXPECT_EQ(pick_fastest({cost(9, 150), failing(cost(3, 10))}, kLimits), 0u);
  EXPECT_EQ(
      pick_full_speed({cost(100, 90, 10, 10), failing(cost(50, 10, 10, 10))}, kLimits, 100, kLink),
      0u);
}

// A candidate that needs more memory than keep costs time and saves no memory. It is not picked
// even if keep does not fit either.
TEST(PicksTest, WhatNeedsMoreMemoryThanKeepIsNoCandidate) {
  Limits wide = kLimits;
  wide.budget_bytes = 1000;
  EXPECT_TRUE(is_useless(cost(5, 201), wide));
  EXPECT_FALSE(is_useless(cost(5, 200), wide));
  EXPECT_EQ(pick_fastest({cost(5, 201), cost(9, 200)}, wide), 1u);
  EXPECT_EQ(pick_full_speed({cost(100, 201, 10, 10), cost(500, 200, 10, 10)}, wide, 100, kLink),
            1u);
}

TEST(PicksTest, TheLeastThatAStepCanTakeIsTheLongestOfThree) {
  EXPECT_EQ(least_ns(100, cost(0, 0, 90, 190), kLink), 100);
  EXPECT_EQ(least_ns(100, cost(0, 0, 190, 90), kLink), 190);
  EXPECT_EQ(least_ns(100, cost(0, 0, 90, 301), kLink), 151);
  const std::int64_t much = std::numeric_limits<std::int64_t>::max() / 2;
  EXPECT_EQ(least_ns(1, cost(0, 0, much, 0), kLink), much);
}

TEST(PicksTest, AtFullSpeedTheLeastMemory) {
  EXPECT_EQ(pick_full_speed({cost(100, 90, 10, 10), cost(102, 80, 20, 20), cost(103, 70, 30, 30)},
                            kLimits, 100, kLink),
            1u);
}

// Once 56 of 81 GiB were copied out and only 5 GiB back: this took no longer, but saved no memory.
TEST(PicksTest, WhatDoesNotBringAllBackIsNotTaken) {
  EXPECT_EQ(pick_full_speed({cost(100, 90, 80, 10), cost(300, 95, 80, 80)}, kLimits, 100, kLink),
            1u);
}

// No copy of the U-Net can be hidden. Once its row was 16 % slower to save 10 of 1,940 MiB.
TEST(PicksTest, WhereNothingCanLeaveUnnoticedNothingMoves) {
  EXPECT_EQ(pick_full_speed({cost(100, 100), cost(116, 95, 80, 80)}, kLimits, 100, kLink), 0u);
  EXPECT_EQ(pick_full_speed({cost(100, 101), cost(116, 95, 80, 80)}, kLimits, 100, kLink), 1u);
}

TEST(PicksTest, WhereMemoryDoesNotAllowFullSpeedTheFastest) {
  EXPECT_EQ(pick_full_speed({cost(100, 150, 10, 10), cost(200, 90, 20, 20), cost(150, 95, 20, 20)},
                            kLimits, 100, kLink),
            2u);
  EXPECT_EQ(pick_full_speed({cost(100, 150, 10, 10), cost(200, 110, 20, 20)}, kLimits, 100, kLink),
            1u);
}

TEST(PicksTest, EitherKindOfMemoryIsJudged) {
  sim::Simulation run;
  run.device_peak_bytes = 5;
  run.device_reserved_bytes = 7;
  const Limits limits{.budget_bytes = 6, .host_bytes = 0, .keep_bytes = 9};
  EXPECT_FALSE(fits(cost_of(run), limits));
  EXPECT_TRUE(fits(cost_of(run, Judged::kAllocated), limits));
}

}  // namespace
}  // namespace ferry::plan
