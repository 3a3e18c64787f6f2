#include "plan/pipeline_planner.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "formats/program_file.h"
#include "formats/statements.h"
#include "plan/stage_costs.h"
#include "scenarios/programs.h"
#include "tests/sim/run/support/staged_layers.h"
#include "tests/sim/support/in_range.h"
#include "verify/programs/random_program.h"

namespace ferry::plan {
namespace {

PipelinePlanRequest request(std::uint32_t devices, std::size_t microbatches) {
  PipelinePlanRequest request;
  request.devices = devices;
  request.microbatches = microbatches;
  request.policies.assign(std::begin(kPipelinePolicies), std::end(kPipelinePolicies));
  request.budget_bytes = std::int64_t{1} << 40;
  return request;
}

const PipelineRow& row(const PipelinePlan& plan, ScheduleKind schedule, const std::string& policy) {
  for (const PipelineRow& each : plan.rows) {
    if (each.schedule == schedule && each.policy == policy) return each;
  }
  throw std::invalid_argument("no such row");
}

constexpr ScheduleKind k1F1B = ScheduleKind::kOneForwardOneBackward;

TEST(PipelinePlannerTest, ARowForEachScheduleAndPolicy) {
  const Program program = test::staged_layers({.layers = 8});
  const PipelinePlan plan = plan_pipeline(program, test::weightless_hardware(), request(4, 8));
  ASSERT_EQ(plan.rows.size(), 12u);
  ASSERT_EQ(plan.cuts.size(), 2u);
  EXPECT_EQ(plan.cuts[0].staged.stages.size(), 4u);
  EXPECT_EQ(plan.cuts[1].staged.stages.size(), 8u);
  EXPECT_TRUE(plan.left_out.empty());
  for (const PipelineRow& each : plan.rows) {
    EXPECT_TRUE(each.simulation.is_safe());
    EXPECT_TRUE(each.fits);
    EXPECT_EQ(each.cut, each.schedule == ScheduleKind::kInterleaved ? 1u : 0u);
  }
  EXPECT_EQ(row(plan, k1F1B, "keep").closed_permille, 273);
  EXPECT_EQ(row(plan, k1F1B, "keep").simulation.bubble_permille(), 273);
  EXPECT_EQ(row(plan, k1F1B, "keep").alive, (std::vector<std::size_t>{4, 3, 2, 1}));
  EXPECT_EQ(row(plan, ScheduleKind::kInterleaved, "keep").simulation.bubble_permille(), 158);
  // Everything fits, so every stage keeps.
  EXPECT_EQ(row(plan, k1F1B, "per-stage").stage_policies,
            std::vector<StagePolicy>(4, StagePolicy::kKeep));
}

TEST(PipelinePlannerTest, StagesThatFitAreLeftAlone) {
  const Program program = test::staged_layers({.layers = 48, .elements = 8 << 20});
  PipelinePlanRequest with = request(4, 4);
  with.schedules = {k1F1B};
  const PipelinePlan free = plan_pipeline(program, test::weightless_hardware(), with);
  const sim::PipelineSimulation& keep = row(free, k1F1B, "keep").simulation;
  // The first stage holds four micro-batches, the last stage one.
  ASSERT_GT(keep.devices[0].reserved_bytes, 2 * keep.devices[3].reserved_bytes);
  with.budget_bytes = keep.devices[3].reserved_bytes * 3 / 2;
  const PipelinePlan tight = plan_pipeline(program, test::weightless_hardware(), with);
  EXPECT_FALSE(row(tight, k1F1B, "keep").fits);
  const PipelineRow found = row(tight, k1F1B, "per-stage");
  EXPECT_TRUE(found.fits);
  EXPECT_NE(found.stage_policies[0], StagePolicy::kKeep);
  EXPECT_EQ(found.stage_policies[3], StagePolicy::kKeep);
  EXPECT_LE(found.simulation.step_ns, row(tight, k1F1B, "checkpoint").simulation.step_ns);
}

TEST(PipelinePlannerTest, ALowerBudgetNeverNeedsMore) {
  EXPECT_TRUE(rc::check([] {
    const Program program =
        test::staged_layers({.layers = *test::in_range(4, 12),
                             .elements = std::int64_t{1} << *test::in_range(18, 24),
                             .forward_ns = *test::in_range(1, 40) * std::int64_t{1'000'000},
                             .skips = *test::in_range(0, 4)});
    PipelinePlanRequest with = request(static_cast<std::uint32_t>(*test::in_range(1, 5)), 4);
    with.schedules = {static_cast<ScheduleKind>(*test::in_range(0, 2))};
    with.policies = {"keep", "per-stage"};
    with.check = false;
    const Hardware hardware = test::tiny_hardware();
    const std::int64_t most =
        plan_pipeline(program, hardware, with).rows[0].simulation.reserved_bytes();
    std::vector<std::int64_t> budgets = {1, most};
    for (int i = 0; i < 3; ++i) budgets.push_back(most / 100 * *test::in_range(1, 100));
    std::sort(budgets.begin(), budgets.end());
    std::int64_t lower = 0;
    bool fitted = false;
    for (const std::int64_t budget : budgets) {
      with.budget_bytes = budget;
      const PipelineRow found = plan_pipeline(program, hardware, with).rows[1];
      RC_ASSERT(found.fits == (found.simulation.reserved_bytes() <= budget));
      RC_ASSERT(found.simulation.reserved_bytes() >= lower);
      RC_ASSERT(found.fits || !fitted);
      lower = found.simulation.reserved_bytes();
      fitted = found.fits;
    }
    RC_ASSERT(fitted);  // the largest budget is what keep needs
  }));
}

TEST(PipelinePlannerTest, WhatMayNotBeIsLeftOutOrRefused) {
  const Program program = test::staged_layers({.layers = 6});
  const Hardware hardware = test::weightless_hardware();
  const auto expect_refused = [&](const PipelinePlanRequest& with, const std::string& text) {
    try {
      plan_pipeline(program, hardware, with);
      ADD_FAILURE() << text;
    } catch (const std::invalid_argument& error) {
      EXPECT_EQ(error.what(), text);
    }
  };
  const std::string units =
      "interleaved: expected at least 8 units of the program for as many stages, found 6";
  EXPECT_EQ(plan_pipeline(program, hardware, request(4, 4)).left_out,
            (std::vector<std::string>{units}));
  const std::string divide =
      "interleaved: expected micro-batches that divide by the devices, found 3 for 2";
  EXPECT_EQ(plan_pipeline(program, hardware, request(2, 3)).left_out,
            (std::vector<std::string>{divide}));
  PipelinePlanRequest with = request(4, 4);
  with.schedules = {ScheduleKind::kInterleaved};
  expect_refused(with, units);
  with = request(2, 3);
  with.schedules = {ScheduleKind::kInterleaved};
  expect_refused(with, divide);
  expect_refused(request(7, 4),
                 "gpipe: expected at least 7 units of the program for as many stages, found 6");
}

// Adds in-place writes to what the previous layer made, as an in-place activation does.
Program with_writes(Program program, const std::vector<int>& layers) {
  std::vector<Statement>& forward = program.codes[1].statements;  // the forward
  auto fresh = static_cast<Slot>(program.globals.size());
  for (const Statement& each : forward) {
    for_each_slot(each.action, [&](Slot slot, Role) { fresh = std::max(fresh, slot + 1); });
  }
  for (const int layer : layers) {
    const auto end = [&](int of) {
      const Action leaves = Module{"m." + std::to_string(of), false};
      return std::find_if(forward.begin(), forward.end(),
                          [&](const Statement& each) { return each.action == leaves; });
    };
    Op make, write;
    make.name = "make";
    make.out = {fresh};
    make.types = {0};
    write.name = "write";
    write.in = {fresh++};
    write.writes = {0};
    forward.insert(end(layer - 1), Statement{make, 0});
    forward.insert(end(layer), Statement{write, 0});
  }
  return program;
}

std::vector<std::size_t> stages_of(const Program& program, std::uint32_t devices) {
  PipelinePlanRequest with = request(devices, 4);
  with.schedules = {k1F1B};
  with.policies = {"keep"};
  const PipelinePlan plan = plan_pipeline(program, test::weightless_hardware(), with);
  EXPECT_TRUE(plan.rows.at(0).simulation.is_safe());
  EXPECT_EQ(plan.cuts[0].costs.size(), devices);
  return plan.cuts[0].units;
}

TEST(PipelinePlannerTest, AUnitThatCannotBeginAStageStaysWithTheOneBefore) {
  const Program program = test::staged_layers({.layers = 8});
  using Sizes = std::vector<std::size_t>;
  EXPECT_EQ(stages_of(program, 4), (Sizes{2, 2, 2, 2}));
  EXPECT_EQ(stages_of(with_writes(program, {3}), 4), (Sizes{2, 2, 2, 2}));
  EXPECT_EQ(stages_of(with_writes(program, {4}), 2), (Sizes{3, 5}));
  EXPECT_EQ(stages_of(with_writes(program, {3, 4, 5}), 2), (Sizes{2, 6}));
  EXPECT_EQ(stages_of(with_writes(program, {1, 2, 3, 4, 6}), 3), (Sizes{5, 2, 1}));
  const PipelinePlan two = plan_pipeline(with_writes(program, {1, 2, 3, 4, 6}),
                                         test::weightless_hardware(), request(2, 4));
  EXPECT_EQ(two.cuts.size(), 1u);
  ASSERT_EQ(two.left_out.size(), 1u) << "interleaved needs four";
  EXPECT_EQ(two.left_out[0].find("interleaved: unit m."), 0u) << two.left_out[0];
  try {
    stages_of(with_writes(program, {1, 2, 3, 4, 6}), 4);
    ADD_FAILURE() << "three units can begin a stage";
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("writes in place what an earlier stage made"),
              std::string::npos)
        << error.what();
  }
}

TEST(PipelinePlannerTest, BalancesByMemoryToo) {
  const Program program = load_program(find_program("unet"));
  PipelinePlanRequest with = request(4, 8);
  with.policies = {"keep"};
  with.schedules = {k1F1B};
  const PipelinePlan time = plan_pipeline(program, find_hardware("a100"), with);
  with.balance = StageBalance::kMemory;
  const PipelinePlan memory = plan_pipeline(program, find_hardware("a100"), with);
  EXPECT_LT(time.rows[0].simulation.step_ns, memory.rows[0].simulation.step_ns);
  EXPECT_GT(time.rows[0].simulation.peak_bytes(), memory.rows[0].simulation.peak_bytes());
}

TEST(StageCostsTest, AreTimesAndBytesOfTheUnits) {
  const std::int64_t elements = 1 << 20;
  const Program program =
      test::staged_layers({.layers = 3, .elements = elements, .forward_ns = 5, .backward_ns = 7});
  const std::vector<StageUnit> units = stage_units(program);
  Hardware hardware = test::weightless_hardware();
  EXPECT_EQ(unit_times(program, units, hardware), (std::vector<std::int64_t>{12, 12, 12}));
  hardware.launch_ns = 6;
  EXPECT_EQ(unit_times(program, units, hardware), (std::vector<std::int64_t>{13, 13, 13}));
  // Two micro-batches' outputs, and a weight with its gradient and two state tensors. The last
  // layer outputs a scalar.
  const std::int64_t weight = 4 * 128;
  const std::int64_t layer = 2 * 2 * elements + weight;
  EXPECT_EQ(unit_bytes(program, units, sim::Optimizer::kAdamW, 2),
            (std::vector<std::int64_t>{layer + 2 * elements, layer, 2 * 4 + weight}));
}

// Compares even_stages with all possible cuts.
TEST(StageCostsTest, EvenStagesAreTheMostEvenOfTheBest) {
  EXPECT_TRUE(rc::check([] {
    const std::size_t units = static_cast<std::size_t>(*test::in_range(1, 9));
    const std::size_t stages =
        static_cast<std::size_t>(*test::in_range(1, static_cast<int>(units) + 1));
    std::vector<std::int64_t> costs;
    for (std::size_t i = 0; i < units; ++i) costs.push_back(*test::in_range(0, 20));
    using Score = std::pair<std::int64_t, std::int64_t>;  // largest stage, sum of squares
    const auto score = [&](const std::vector<std::size_t>& sizes) {
      Score result{0, 0};
      auto at = costs.begin();
      for (const std::size_t size : sizes) {
        const auto end = at + static_cast<std::ptrdiff_t>(size);
        const std::int64_t sum = std::accumulate(at, end, std::int64_t{0});
        result = {std::max(result.first, sum), result.second + sum * sum};
        at = end;
      }
      return result;
    };
    Score best{1 << 20, 0};
    std::vector<std::size_t> sizes;
    const std::function<void(std::size_t)> try_all = [&](std::size_t left) {
      if (sizes.size() + 1 == stages) {
        sizes.push_back(left);
        best = std::min(best, score(sizes));
        sizes.pop_back();
        return;
      }
      for (std::size_t size = 1; size + (stages - sizes.size() - 1) <= left; ++size) {
        sizes.push_back(size);
        try_all(left - size);
        sizes.pop_back();
      }
    };
    try_all(units);
    const std::vector<std::size_t> found = even_stages(costs, stages);
    RC_ASSERT(found.size() == stages);
    RC_ASSERT(std::accumulate(found.begin(), found.end(), std::size_t{0}) == units);
    RC_ASSERT(std::find(found.begin(), found.end(), 0u) == found.end());
    RC_ASSERT(score(found) == best);
  }));
}

}  // namespace
}  // namespace ferry::plan
