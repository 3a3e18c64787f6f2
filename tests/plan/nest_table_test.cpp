// The table of nested spans: the simulator confirms the time and memory that it predicts, and it
// needs less memory than spans that are not nested.
#include "plan/nest_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "formats/program_file.h"
#include "plan/keep_trace.h"
#include "plan/planner.h"
#include "plan/span_model.h"
#include "scenarios/hardware.h"
#include "scenarios/programs.h"
#include "tests/sim/support/graphs.h"
#include "tests/sim/support/sizes.h"
#include "tests/sim/support/tiny.h"

namespace ferry::plan {
namespace {

using test::kMiB;

std::size_t levels(const std::vector<PlanSpan>& spans) {
  std::size_t most = 0;
  for (const PlanSpan& span : spans) most = std::max(most, 1 + levels(span.inner));
  return most;
}

// Expects spans in order, within the operators from `first` to `last`.
void expect_nested(const std::vector<PlanSpan>& spans, std::uint64_t first, std::uint64_t last) {
  for (const PlanSpan& span : spans) {
    EXPECT_GE(span.first, first);
    EXPECT_LE(span.first, span.last);
    EXPECT_LE(span.last, last);
    expect_nested(span.inner, span.first, span.last);
    first = span.last + 1;
  }
}

struct Chain {
  Program program;
  SpanChoices choices;
  sim::Simulation keep;
};

Chain chain(const std::vector<test::Stage>& stages) {
  Program program = test::chain_of(stages, 2 * kMiB, false);
  const Hardware card = test::tiny_hardware();
  SpanChoices choices(span_model(program, trace_keep(program, card)));
  sim::Simulation keep = sim::simulate(program, card, {});
  return {std::move(program), std::move(choices), std::move(keep)};
}

std::vector<test::Stage> equal_stages(std::size_t count) {
  return std::vector<test::Stage>(
      count, {.out_bytes = 20 * kMiB, .forward_ns = 1'000'000, .backward_ns = 2'000'000});
}

// Returns the least memory for which the table has spans, in thousandths of the peak of keep.
std::int64_t least_permille(const Chain& of, const auto& table) {
  const std::int64_t bytes =
      of.choices.model().least_bytes + table.least_slots() * of.choices.slot_bytes();
  return bytes * 1000 / of.choices.peak_bytes();
}

// Without nesting, a plan needs about the saves of the square root of the number of stages. With
// nesting, it needs those of a few stages.
TEST(NestTableTest, NestedSpansFitWhereOneLevelDoesNot) {
  const Chain of = chain(equal_stages(40));
  const std::int64_t flat = least_permille(of, SpanTable(of.choices, 0));
  const std::int64_t nested = least_permille(of, NestTable(of.choices));
  EXPECT_GT(flat, 220);
  EXPECT_LT(nested, 130);
}

TEST(NestTableTest, OfAChainItSaysTheTimeAndTheMemory) {
  for (const bool equal : {true, false}) {
    const Chain of = chain(equal ? equal_stages(30) : test::random_stages(30, 3));
    const NestTable table(of.choices);
    std::size_t deepest = 0;
    for (std::int32_t slots = table.least_slots(); slots < of.choices.slots(); slots += 150) {
      const std::vector<PlanSpan> spans = table.spans(slots);
      expect_nested(spans, 0, of.choices.operators() - 1);
      deepest = std::max(deepest, levels(spans));
      sim::SimulationOptions options;
      options.spans = spans;
      const sim::Simulation run = sim::simulate(of.program, test::tiny_hardware(), options);
      EXPECT_TRUE(run.errors.empty());
      EXPECT_TRUE(run.hazards.empty());
      EXPECT_EQ(run.gradients, of.keep.gradients);
      const sim::Time again = run.compute_ns - of.keep.compute_ns;
      EXPECT_LE(std::abs(again - table.ns(slots)), of.keep.compute_ns / 1000) << slots;
      const std::int64_t bytes = of.choices.model().least_bytes + slots * of.choices.slot_bytes();
      EXPECT_LE(run.device_peak_bytes, bytes + of.choices.peak_bytes() / 32) << slots;
    }
    EXPECT_GE(deepest, 3u);
  }
}

// More memory is never slower, and with all memory nothing is recomputed.
TEST(NestTableTest, MoreMemoryIsNeverSlower) {
  const Chain of = chain(test::random_stages(25, 7));
  const NestTable table(of.choices);
  for (std::int32_t slots = table.least_slots() + 1; slots <= of.choices.slots(); ++slots) {
    ASSERT_LE(table.ns(slots), table.ns(slots - 1));
  }
  EXPECT_EQ(table.ns(of.choices.slots()), 0);
  EXPECT_TRUE(table.spans(of.choices.slots()).empty());
}

class ShippedNests : public ::testing::TestWithParam<std::string> {};

// The table works on blocks of a model's operators, so its predictions are not exact. A plan for
// its least memory runs, and needs less memory than keep.
TEST_P(ShippedNests, NeedNoMoreThanIsSaid) {
  const Program program = load_program(find_program(GetParam()));
  const Hardware card = find_hardware("h100");
  const SpanChoices choices(span_model(program, trace_keep(program, card)));
  const NestTable table(choices);
  const sim::Simulation keep = sim::simulate(program, card, {});
  sim::SimulationOptions options;
  options.spans = table.spans(table.least_slots());
  EXPECT_GE(levels(options.spans), 2u);
  const sim::Simulation run = sim::simulate(program, card, options);
  EXPECT_TRUE(run.errors.empty());
  EXPECT_TRUE(run.hazards.empty());
  EXPECT_EQ(run.gradients, keep.gradients);
  EXPECT_LT(run.device_peak_bytes, keep.device_peak_bytes);
}
INSTANTIATE_TEST_SUITE_P(Shipped, ShippedNests, ::testing::Values("unet", "gpt2"));

}  // namespace
}  // namespace ferry::plan
