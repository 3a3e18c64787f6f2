#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "formats/plan_file.h"
#include "plan/planner.h"
#include "tests/sim/support/sizes.h"
#include "tests/sim/support/tiny.h"
#include "tests/verify/support/gen.h"
#include "verify/programs/random_program.h"

namespace ferry::plan {
namespace {

using test::kMiB;

Hardware card() {
  Hardware hardware = test::tiny_hardware();
  hardware.memory_bytes_per_us = 100'000;
  hardware.host_memory_bytes = std::int64_t{64} << 30;
  return hardware;
}

PolicyRow row_under(const Program& program, const Hardware& hardware, std::int64_t budget_bytes) {
  PlanRequest request;
  request.policies = {Policy::kOffloadSome};
  request.budget_bytes = budget_bytes;
  request.check = false;
  return plan(program, hardware, request).rows.front();
}

// With a larger budget, the row reserves no less; once one fits, later rows fit and are no slower.
void check_monotone(const Program& program, const Hardware& hardware,
                    const std::vector<std::int64_t>& budgets) {
  std::vector<PolicyRow> rows;
  for (const std::int64_t budget : budgets) {
    rows.push_back(row_under(program, hardware, budget));
    const PolicyRow& row = rows.back();
    RC_ASSERT(row.fits == (row.simulation.device_reserved_bytes <= budget));
    if (rows.size() == 1) continue;
    const PolicyRow& lower = rows[rows.size() - 2];
    RC_ASSERT(lower.simulation.device_reserved_bytes <= row.simulation.device_reserved_bytes);
    if (!lower.fits) continue;
    RC_ASSERT(row.fits);
    RC_ASSERT(row.simulation.step_ns <= lower.simulation.step_ns);
  }
}

TEST(PlannerProp, ALowerBudgetNeverReservesMore) {
  EXPECT_TRUE(rc::check([] {
    const int layers = *test::in_range(1, 13);
    const std::int64_t activation = *test::in_range(1, 300) * kMiB;
    const Program program =
        test::chain({.layers = layers,
                     .elements = activation / 2,
                     .weight_elements = *test::in_range(1, 8) * kMiB,
                     .op_ns = *test::in_range(1, 200) * std::int64_t{1'000'000}});
    const std::int64_t most = (layers + 4) * (activation + 16 * kMiB);
    std::vector<std::int64_t> budgets = {1, most};
    for (int i = 0; i < 2; ++i) budgets.push_back(most / 100 * *test::in_range(1, 100));
    std::sort(budgets.begin(), budgets.end());
    check_monotone(program, card(), budgets);
  }));
}

// A plan runs as its row says, also after it was written to a file, and changes no gradient.
TEST(PlannerProp, APlanRunsAsItsRow) {
  EXPECT_TRUE(rc::check([] {
    test::Recipe recipe = *test::any_recipe();
    // A plan needs equal forwards. If a backward saves tensors itself, it must run before the next
    // forward.
    recipe.failure = test::StepFailure::kNone;
    recipe.embeds = true;
    recipe.derivatives = 1;
    for (test::Layer& layer : recipe.layers) {
      if (layer.kind == test::LayerKind::kNested) recipe.order = MicrobatchOrder::kFbfb;
    }
    const Program program = test::make_program(recipe);
    PlanRequest request;
    request.policies = {Policy::kKeep, Policy::kOffload, Policy::kOffloadSome, Policy::kPrefetch};
    if (has_segments(program)) {
      for (const Policy policy :
           {Policy::kCheckpoint, Policy::kCheckpointNth, Policy::kCheckpointOffload}) {
        request.policies.push_back(policy);
      }
    }
    request.budget_bytes = *test::in_range(1, 64) * kMiB;
    const PlanResult result = plan(program, card(), request);
    const sim::Simulation& keep = result.rows.front().simulation;
    for (const PolicyRow& row : result.rows) {
      RC_ASSERT(row.simulation.hazards.empty());
      RC_ASSERT(!row.simulation.leftovers.any());
      RC_ASSERT(row.simulation.gradients == keep.gradients);
      const Plan plan = parse_plan(to_text(to_plan(program, card(), result, row)), "plan.json");
      sim::SimulationOptions options;
      options.offload = to_options(plan);
      options.segments = planned_segments(plan);
      options.device_bytes = row.device_bytes;
      const sim::Simulation again = sim::simulate(with_segments(program), card(), options);
      RC_LOG() << to_text(plan);
      RC_ASSERT(again.digest == row.simulation.digest);
      RC_ASSERT(again.device_reserved_bytes == plan.predicted.reserved_bytes);
      RC_ASSERT(again.step_ns == plan.predicted.step_ns);
    }
  }));
}

}  // namespace
}  // namespace ferry::plan
