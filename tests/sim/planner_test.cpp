#include "sim/planner.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "formats/plan_file.h"
#include "formats/program_file.h"
#include "scenarios/programs.h"
#include "tests/sim/tiny.h"

namespace ferry::sim {
namespace {

// Twelve activations of 256 MiB; to copy one takes 268 ms, to compute on it 100.
constexpr std::int64_t kActivation = std::int64_t{256} << 20;
constexpr std::int64_t kWeight = std::int64_t{2} << 20;
Program chain() {
  return test::chain({.layers = 12,
                      .elements = kActivation / 2,
                      .weight_elements = kWeight / 2,
                      .op_ns = 100'000'000});
}

PlanRequest request(std::vector<std::string> policies,
                    std::int64_t budget_bytes = std::int64_t{8} << 30) {
  PlanRequest made;
  made.policies = std::move(policies);
  made.budget_bytes = budget_bytes;
  return made;
}

Hardware card() {
  Hardware hardware = test::tiny_hardware();
  hardware.host_memory_bytes = std::int64_t{8} << 30;
  return hardware;
}
PlanResult plan_chain(const PlanRequest& request) { return plan(chain(), card(), request); }

std::string error_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(PlannerTest, EveryPolicyIsARowAsAskedFor) {
  const PlanResult result =
      plan_chain(request({"budget", "keep", "prefetch", "offload-all", "keep"}));
  ASSERT_EQ(result.rows.size(), 5u);
  const std::vector<std::string> names = {"budget", "keep", "prefetch", "offload-all", "keep"};
  for (std::size_t i = 0; i < names.size(); ++i) {
    const PolicyRow& row = result.rows[i];
    EXPECT_EQ(row.policy, names[i]);
    EXPECT_EQ(row.options.has_value(), names[i] != "keep");
    EXPECT_TRUE(row.fits);
    EXPECT_TRUE(row.simulation.hazards.empty());
    EXPECT_FALSE(row.simulation.leftovers.any());
    EXPECT_EQ(row.simulation.gradients, result.rows[1].simulation.gradients);
  }
  EXPECT_EQ(result.rows[1].simulation.step_ns, result.keep_ns);
  EXPECT_EQ(result.packs.size(), 13u);
}

TEST(PlannerTest, WithRoomForAllNothingNeedsToMove) {
  const PlanResult result = plan_chain(request({"keep", "budget"}));
  EXPECT_EQ(result.rows[1].simulation.step_ns, result.keep_ns);
}

TEST(PlannerTest, ATightBudgetIsMetByMoving) {
  const PlanResult result = plan_chain(request({"keep", "budget"}));
  const std::int64_t all = result.rows[0].simulation.device_reserved_bytes;
  const PolicyRow tight = plan_chain(request({"budget"}, all - 2 * kActivation)).rows[0];
  EXPECT_TRUE(tight.fits);
  EXPECT_LE(tight.simulation.device_reserved_bytes, all - 2 * kActivation);
  EXPECT_GT(tight.simulation.statistics.offloaded_bytes, 0);
}

TEST(PlannerTest, ABudgetThatNothingMeetsDoesNotFitAndIsAnsweredWithTheLeast) {
  const PolicyRow least = plan_chain(request({"budget"}, 1)).rows[0];
  EXPECT_FALSE(least.fits);
  const PolicyRow keep = plan_chain(request({"keep"}, 1)).rows[0];
  EXPECT_FALSE(keep.fits);
  EXPECT_LT(least.simulation.device_reserved_bytes, keep.simulation.device_reserved_bytes);
  const std::int64_t reserved = least.simulation.device_reserved_bytes;
  EXPECT_TRUE(plan_chain(request({"budget"}, reserved)).rows[0].fits);
  EXPECT_FALSE(plan_chain(request({"budget"}, reserved - 1)).rows[0].fits);
}

TEST(PlannerTest, ALowerBudgetNeverReservesMoreOfAShippedProgram) {
  const Program gpt2 = load_program(find_program("gpt2"));
  const Hardware hardware = find_hardware("rtx4090");
  std::int64_t reserved = 0;
  for (const std::int64_t gib : {4, 6, 8, 10}) {
    PlanRequest unchecked = request({"budget"}, gib << 30);
    unchecked.check = false;
    const PolicyRow row = plan(gpt2, hardware, unchecked).rows[0];
    EXPECT_GE(row.simulation.device_reserved_bytes, reserved) << gib;
    EXPECT_EQ(row.fits, row.simulation.device_reserved_bytes <= gib << 30) << gib;
    reserved = row.simulation.device_reserved_bytes;
  }
}

TEST(PlannerTest, WhatTheHostCannotPinDoesNotFit) {
  Hardware hardware = card();
  hardware.host_memory_bytes = 4096;
  EXPECT_FALSE(plan(chain(), hardware, request({"offload-all"})).rows[0].fits);
  EXPECT_TRUE(plan(chain(), hardware, request({"keep"})).rows[0].fits);
}

TEST(PlannerTest, AnOptimizersStateIsInEveryRow) {
  PlanRequest adamw = request({"keep", "offload-all"});
  const PlanResult without = plan_chain(adamw);
  adamw.optimizer = Optimizer::kAdamW;
  const PlanResult with = plan_chain(adamw);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(with.rows[i].simulation.device_peak_bytes,
              without.rows[i].simulation.device_peak_bytes + 12 * 2 * kWeight);
  }
}

TEST(PlannerTest, AnUnknownPolicyIsRefused) {
  EXPECT_EQ(error_of([] {
              plan_chain(request({"keep", "magic"}));
            }),
            "no policy is called 'magic': expected keep, offload-all, prefetch or budget");
}

TEST(PlannerTest, ProgressCountsToTheEndOfEverySearch) {
  PlanRequest watched = request({"prefetch", "budget"});
  std::vector<std::string> ended;
  watched.progress = [&](std::string_view what, std::size_t done, std::size_t all) {
    EXPECT_LE(done, all);
    if (done == all && (ended.empty() || ended.back() != what)) ended.emplace_back(what);
  };
  plan_chain(watched);
  EXPECT_EQ(ended, (std::vector<std::string>{"prefetch", "budget"}));
}

TEST(PlannerTest, AProgramThatSavesNothingIsPlanned) {
  test::Builder b;
  const Slot w = b.global(GlobalKind::kParameter, b.type({1024}));
  b.op(0, "f", {w}, b.type({1024}));
  PlanRequest all = request({"keep", "offload-all", "prefetch", "budget"});
  const PlanResult result = plan(b.program, card(), all);
  for (const PolicyRow& row : result.rows) {
    EXPECT_EQ(row.simulation.digest, result.rows[0].simulation.digest);
    EXPECT_FALSE(to_options(to_plan(b.program, card(), result, row)).has_value());
  }
}

TEST(PlannerTest, SlowdownIsRoundedUp) {
  EXPECT_EQ(slowdown_permille(1000, 1000), 1000);
  EXPECT_EQ(slowdown_permille(1'000'001, 1'000'000), 1001);
  EXPECT_EQ(slowdown_permille(1853, 1000), 1853);
  EXPECT_EQ(slowdown_permille(0, 0), 1000);
}

// Every row, through a file: what runs is what was promised.
void expect_round_trips(const Program& program, const Hardware& hardware,
                        const PlanRequest& request) {
  const PlanResult result = plan(program, hardware, request);
  for (const PolicyRow& row : result.rows) {
    const Plan written = to_plan(program, hardware, result, row);
    const Plan read = parse_plan(to_text(written), "plan.json");
    EXPECT_EQ(read, written) << row.policy;
    EXPECT_EQ(read.program_digest, digest(program));
    EXPECT_EQ(read.entries.size(), result.packs.size());
    SimulationOptions options;
    options.offload = to_options(read);
    const Simulation again = simulate(program, hardware, options);
    EXPECT_EQ(again.digest, row.simulation.digest) << row.policy;
    EXPECT_EQ(again.step_ns, read.predicted.step_ns) << row.policy;
    EXPECT_EQ(again.device_peak_bytes, read.predicted.peak_bytes) << row.policy;
    EXPECT_EQ(again.device_reserved_bytes, read.predicted.reserved_bytes) << row.policy;
    EXPECT_EQ(again.host_peak_bytes, read.predicted.host_bytes) << row.policy;
    EXPECT_EQ(again.gradients, row.simulation.gradients) << row.policy;
  }
}

TEST(PlannerTest, APlanRunsAsItsRow) {
  expect_round_trips(chain(), card(), request({"keep", "offload-all", "prefetch", "budget"}));
  expect_round_trips(chain(), card(), request({"budget"}, 1));
}

TEST(PlannerTest, AShippedProgramsPlanRunsAsItsRow) {
  expect_round_trips(load_program(find_program("gpt2")), find_hardware("rtx4090"),
                     request({"offload-all", "prefetch", "budget"}, std::int64_t{7} << 30));
}

TEST(PlannerTest, APlansEntriesSayWhatMovesByStorage) {
  const PlanResult result = plan_chain(request({"offload-all", "keep"}));
  const Plan all = to_plan(chain(), card(), result, result.rows[0]);
  EXPECT_EQ(all.hardware, "tiny");
  EXPECT_EQ(all.policy, "offload-all");
  ASSERT_EQ(all.entries.size(), 13u);
  EXPECT_EQ(all.entries[12].op, "LossBackward");
  EXPECT_EQ(all.entries[12].decision, PlanChoice::kOffload);
  const Plan keep = to_plan(chain(), card(), result, result.rows[1]);
  for (const PlanEntry& entry : keep.entries) EXPECT_EQ(entry.decision, PlanChoice::kKeep);
  EXPECT_FALSE(to_options(keep).has_value());
}

TEST(PlannerTest, AnOptionThatIsNoneIsRefused) {
  const PlanResult result = plan_chain(request({"offload-all"}));
  const Plan good = to_plan(chain(), card(), result, result.rows[0]);
  const auto refusal = [&](const std::string& name, std::int64_t value) {
    Plan bad = good;
    bad.options = {{name, value}};
    return error_of([&] { to_options(bad); });
  };
  EXPECT_EQ(refusal("window_bytes", 5), "");
  EXPECT_EQ(refusal("speed", 5), "no option of the offloader is called 'speed'");
  EXPECT_EQ(refusal("copy_streams", 3), "option 'copy_streams' cannot be 3");
  EXPECT_EQ(refusal("reload_pool", -1), "option 'reload_pool' cannot be -1");
  EXPECT_EQ(refusal("window_packs", 0), "window_packs should be at least 1 but is 0");
}

}  // namespace
}  // namespace ferry::sim
