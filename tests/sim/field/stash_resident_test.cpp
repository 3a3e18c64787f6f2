// What TRL's offloading has on the device beside what it moves: what is saved again, what waits.
#include <gtest/gtest.h>

#include "sim/field/stash.h"
#include "sim/run/simulation.h"
#include "sim/run/training/test_hardware.h"
#include "tests/sim/support/saving_steps.h"

namespace ferry::field {
namespace {

using Steps = test::SavingSteps;
constexpr std::int64_t kBytes = Steps::kBytes;

sim::Simulation run(const Program& program, StashPolicy policy) {
  sim::SimulationOptions options;
  options.scheduler = [policy](const sim::SimDevice& device, const sim::SimAutograd& autograd) {
    return make_stash(device, autograd, policy);
  };
  sim::Simulation run = sim::simulate(program, sim::test_hardware(), options);
  EXPECT_TRUE(run.errors.empty());
  return run;
}

sim::Simulation run_safely(const Program& program, StashPolicy policy) {
  sim::Simulation ran = run(program, policy);
  for (const check::Hazard& hazard : ran.hazards) ADD_FAILURE() << to_string(hazard);
  return ran;
}

Program saved_again_after(int others) {
  Steps steps;
  const Slot x = steps.make("x");
  steps.save(x, "reads");
  steps.save(x, "reads again");
  for (int i = 0; i < others; ++i) steps.save(steps.make("y"), "reads y");
  steps.save(x, "reads late");
  return steps.run(true);
}

TEST(StashResidentTest, WhatIsSavedAgainOnItsWayStaysAndCountsOnce) {
  const sim::Simulation ran = run_safely(saved_again_after(0), trl());
  EXPECT_EQ(ran.resident.kept_peak_bytes, kBytes);
  EXPECT_EQ(ran.d2h_bytes, kBytes);
}

// Its key is now that of the tensor that stays, and outlives the window.
TEST(StashResidentTest, WhatStaysIsKnownAsLongAsItStays) {
  const sim::Simulation ran = run_safely(saved_again_after(8), trl());
  EXPECT_EQ(ran.resident.kept_peak_bytes, kBytes);
  EXPECT_EQ(ran.d2h_bytes, 9 * kBytes);
}

TEST(StashResidentTest, TheWindowIsFivePacks) {
  Steps steps;
  for (int i = 0; i < 12; ++i) steps.save(steps.make("y"), "reads y");
  const sim::Simulation ran = run_safely(steps.run(true), trl());
  EXPECT_EQ(ran.resident.waiting_peak_bytes, 5 * kBytes);
  EXPECT_EQ(ran.resident.kept_peak_bytes, 0);
}

// Each activation lies where the one before the window lay.
TEST(StashResidentTest, StaleKeysKeepWhatWasNeverMoved) {
  Steps steps;
  for (int i = 0; i < 12; ++i) {
    const Slot y = steps.make("y");
    steps.save(y, "reads y");
    steps.free({y});
  }
  const Program program = steps.run(true);
  EXPECT_EQ(run_safely(program, trl()).d2h_bytes, 12 * kBytes);
  const sim::Simulation ran = run_safely(program, trl_with_stale_keys());
  EXPECT_GT(ran.resident.kept_peak_bytes, 0);
  EXPECT_LT(ran.d2h_bytes, 12 * kBytes);
}

TEST(StashResidentTest, RecordStreamLeavesTheWaitToThePool) {
  Steps steps;
  for (int i = 0; i < 12; ++i) {
    const Slot y = steps.make("y");
    steps.save(y, "reads y");
    steps.free({y});
  }
  const Program program = steps.run(true);
  const sim::Simulation window = run_safely(program, trl());
  const sim::Simulation pool = run_safely(program, by_record_stream());
  EXPECT_EQ(pool.resident.waiting_peak_bytes, 0);
  EXPECT_EQ(window.deferred_peak_bytes, 0);
  EXPECT_GT(pool.deferred_peak_bytes, 6 * kBytes);
  EXPECT_LT(pool.device_peak_bytes, window.device_peak_bytes);
}

// A dense copy of the view moves, and the checkers know it when it comes back: also that it came
// too early.
TEST(StashResidentTest, AViewWithGapsMovesWithoutThem) {
  Steps steps;
  steps.save(steps.view_with_gaps(steps.make("x")), "reads");
  for (int i = 0; i < 6; ++i) steps.save(steps.make("y"), "reads y");
  const Program program = steps.run(true);
  StashPolicy policy = trl();
  EXPECT_EQ(run_safely(program, policy).d2h_bytes, 6 * kBytes + kBytes / 2);
  policy.gathers = false;
  EXPECT_EQ(run_safely(program, policy).d2h_bytes, 7 * kBytes - 2);

  Steps early;
  early.save(early.view_with_gaps(early.make("x")), "reads");
  policy = trl();
  policy.clone = StashPolicy::Clone::kOnCopyStream;
  EXPECT_FALSE(run(early.run(true), policy).hazards.empty());
}

}  // namespace
}  // namespace ferry::field
