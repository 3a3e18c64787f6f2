// Spans of operators make the row `best` faster, and its plans run as predicted.
#include "plan/span_search.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>

#include "formats/plan_file.h"
#include "formats/program_file.h"
#include "plan/planner.h"
#include "scenarios/programs.h"
#include "tests/sim/support/segmented.h"

namespace ferry::plan {
namespace {

class SpanSearchTest : public ::testing::TestWithParam<std::pair<std::string, std::string>> {
 protected:
  PlanResult best(std::int64_t percent, bool spans) const {
    PlanRequest request;
    request.policies = {Policy::kBest};
    request.spans = spans;
    const sim::Simulation keep = sim::simulate(program_, card_, {});
    request.budget_bytes = keep.device_reserved_bytes / 100 * percent;
    return plan(program_, card_, request);
  }

  const Program program_ = load_program(find_program(GetParam().first));
  const Hardware card_ = find_hardware(GetParam().second);
};

// Spans can recompute only the cheap norms and activations of a block. A module also contains its
// matrix products.
TEST_P(SpanSearchTest, SpansAreFasterThanModules) {
  const PlanResult modules = best(70, false);
  const PlanResult spans = best(70, true);
  const PolicyRow& row = spans.rows[0];
  EXPECT_TRUE(row.is_answer());
  EXPECT_LT(row.simulation.step_ns - spans.keep_ns,
            (modules.rows[0].simulation.step_ns - modules.keep_ns) / 100 * 95);
  EXPECT_GE(row.simulation.step_ns, *spans.certificate->step_ns);
  EXPECT_TRUE(to_plan(program_, card_, modules, modules.rows[0]).spans.empty());
}

TEST_P(SpanSearchTest, ThePlanFileSaysWhatRan) {
  const PlanResult result = best(70, true);
  const PolicyRow& row = result.rows[0];
  const Plan plan = parse_plan(to_text(to_plan(program_, card_, result, row)), "plan.json");
  ASSERT_FALSE(plan.spans.empty());
  EXPECT_TRUE(plan.segments.empty());
  EXPECT_EQ(plan_mismatch(survey(program_, card_, plan), plan), "");
  sim::SimulationOptions options;
  options.offload = to_options(plan);
  options.segments = planned_segments(plan);
  options.spans = plan.spans;
  options.device_bytes = row.device_bytes;  // it may fit only by freeing cached memory
  const sim::Simulation again = sim::simulate(program_, card_, options);
  EXPECT_EQ(again.digest, row.simulation.digest);
  EXPECT_EQ(again.gradients, sim::simulate(program_, card_, {}).gradients);
  EXPECT_EQ(again.step_ns, plan.predicted.step_ns);
  EXPECT_EQ(again.device_reserved_bytes, plan.predicted.reserved_bytes);
  EXPECT_GT(again.replays.calls_replayed, 0);
}

INSTANTIATE_TEST_SUITE_P(Shipped, SpanSearchTest,
                         ::testing::Values(std::pair("unet", "h100"),
                                           std::pair("gpt2", "rtx4090")));

// The calls of this forward are segments, and a span contains no call.
TEST(SpanSearchCallsTest, AForwardThatCallsOtherCodeHasNone) {
  const Hardware card = find_hardware("h100");
  PlanRequest request;
  request.policies = {Policy::kBest};
  request.budget_bytes = 1;
  const Program program = test::segmented({{}, {}});
  const PlanResult result = plan(program, card, request);
  EXPECT_TRUE(to_plan(program, card, result, result.rows[0]).spans.empty());
}

}  // namespace
}  // namespace ferry::plan
