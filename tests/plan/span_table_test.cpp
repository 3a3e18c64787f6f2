// Compares the table of spans with all choices of spans of small forwards, and with the simulator
// on shipped programs.
#include "plan/span_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "formats/program_file.h"
#include "plan/keep_trace.h"
#include "plan/planner.h"
#include "scenarios/programs.h"
#include "tests/sim/support/sizes.h"
#include "verify/programs/random_program.h"

namespace ferry::plan {
namespace {

using test::kMiB;

// Returns a few operators. Some save what they read, what they make, or both.
SpanModel small_model(choices::Draws& draws) {
  SpanModel model;
  const int all = draws.in(2, 6);
  for (int i = 0; i < all; ++i) {
    ModelOperator op{.ns = draws.in(1, 50), .beside = draws.in(0, 20) * kMiB};
    op.again = !draws.one_in(8);
    op.joins_next = !draws.one_in(8);
    const auto at = static_cast<std::uint32_t>(i);
    op.makes = {at};
    model.storages.push_back({.bytes = draws.in(1, 30) * kMiB, .maker = at, .last = at});
    for (std::uint32_t s = 0; s < at; ++s) {
      if (s + 1 < at && !draws.one_in(3)) continue;
      op.reads.push_back(s);
      model.storages[s].last = at;
      if (draws.one_in(3)) continue;
      op.saves.push_back(s);
      model.storages[s].saved = true;
    }
    if (draws.one_in(2)) {
      op.saves.push_back(at);
      model.storages[at].saved = true;
    }
    model.operators.push_back(op);
  }
  for (const ModelStorage& storage : model.storages) {
    if (storage.saved) model.operators[storage.maker].saved_bytes += storage.bytes;
    model.peak_bytes += storage.bytes;
  }
  model.peak_bytes += 20 * kMiB;
  return model;
}

// Returns the least time of all choices from an operator on; no value: nothing fits.
std::optional<std::int64_t> least(const SpanChoices& choices, std::size_t op, std::int32_t slots) {
  if (op == choices.operators()) return 0;
  std::optional<std::int64_t> found;
  const auto meet = [&](std::size_t end, std::int64_t ns, std::int32_t needed, std::int32_t held) {
    if (slots < needed) return;
    const auto rest = least(choices, end, slots - held);
    if (rest && (!found || *rest + ns < *found)) found = *rest + ns;
  };
  meet(op + 1, 0, choices.needed_slots(op), choices.kept_slots(op));
  for (const auto& each : choices.from(op)) {
    meet(each.end, each.ns, each.needed_slots, each.retained_slots);
  }
  return found;
}

std::int64_t ns_of(const SpanChoices& choices, const std::vector<PlanSpan>& spans) {
  std::int64_t ns = 0;
  for (const PlanSpan& span : spans) {
    for (const auto& each : choices.from(span.first)) {
      if (each.end != span.last + 1 || choices.span(each).keep != span.keep) continue;
      ns += each.ns;
      break;
    }
  }
  return ns;
}

TEST(SpanTableTest, NoChoiceOfSpansOfASmallForwardIsFaster) {
  int spanned = 0;
  for (std::uint64_t number = 0; number < 300; ++number) {
    choices::Draws draws(31, number);
    const SpanChoices choices(small_model(draws));
    const SpanTable table(choices, 0);
    for (std::int32_t slots = 0; slots <= choices.slots(); slots += 97) {
      const auto expected = least(choices, 0, slots);
      ASSERT_EQ(table.fits(slots), expected.has_value()) << number;
      if (!expected) continue;
      EXPECT_EQ(table.ns(slots), *expected) << number;
      const std::vector<PlanSpan> spans = table.spans(slots);
      EXPECT_EQ(ns_of(choices, spans), *expected) << number;
      spanned += !spans.empty();
    }
  }
  EXPECT_GT(spanned, 200);
}

// a makes x. b makes y from x, and saves both. c reads y and saves nothing.
TEST(SpanTableTest, WhatIsReadAfterASpanIsKept) {
  SpanModel model;
  model.operators.resize(3);
  for (std::uint32_t i = 0; i < 3; ++i) model.operators[i].makes = {i};
  model.operators[0].ns = 1;
  model.operators[1].ns = 10;
  model.operators[1].reads = {0};
  model.operators[1].saves = {0, 1};
  model.operators[2].reads = {1};
  model.storages = {{.bytes = 8 * kMiB, .maker = 0, .last = 1, .saved = true},
                    {.bytes = 8 * kMiB, .maker = 1, .last = 2, .saved = true},
                    {.bytes = 8 * kMiB, .maker = 2, .last = 2}};
  for (const int i : {0, 1}) model.operators[i].saved_bytes = 8 * kMiB;
  model.peak_bytes = 32 * kMiB;
  const SpanChoices choices(model);
  ASSERT_EQ(choices.from(0).size(), 2u) << "a and b, or all three";
  EXPECT_EQ(choices.from(0)[0].ns, 1) << "b's result is kept, and b runs once";
  EXPECT_EQ(choices.span(choices.from(0)[0]).keep, std::vector<std::uint64_t>{1});
  EXPECT_EQ(choices.from(0)[1].ns, 11);
  EXPECT_EQ(choices.span(choices.from(0)[1]).keep, std::vector<std::uint64_t>{2});
  EXPECT_EQ(choices.from(0)[1].retained_slots, 0);
}

// a makes x, which b and c read. b is expensive. The results of b and d are saved too.
TEST(SpanTableTest, ASpanMayKeepWhatIsDear) {
  SpanModel model;
  model.operators.resize(4);
  for (std::uint32_t i = 0; i < 4; ++i) {
    model.operators[i] = {.ns = i == 1 ? 1'000'000 : 10'000, .makes = {i}};
    model.storages.push_back({.bytes = 8 * kMiB, .maker = i, .last = i});
  }
  model.operators[1].reads = model.operators[1].saves = {0};
  model.operators[2].reads = {0, 1};
  model.operators[2].saves = {0, 1};
  model.storages[0] = {.bytes = 8 * kMiB, .maker = 0, .last = 2, .saved = true};
  model.storages[1] = {.bytes = 8 * kMiB, .maker = 1, .last = 2, .saved = true};
  model.storages[3] = {.bytes = 16 * kMiB, .maker = 3, .last = 3, .saved = true};
  model.operators[3].saves = {3};
  model.operators[0].saved_bytes = model.operators[1].saved_bytes = 8 * kMiB;
  model.operators[3].saved_bytes = 16 * kMiB;
  model.peak_bytes = 48 * kMiB;
  const SpanChoices choices(model);
  const auto keeps_b = [&](const SpanChoices::Choice& each) {
    return choices.span(each).keep == std::vector<std::uint64_t>{1, 2};
  };
  const auto& from = choices.from(0);
  const auto found = std::find_if(from.begin(), from.end(), keeps_b);
  ASSERT_NE(found, from.end());
  EXPECT_EQ(found->end, 3u);
  EXPECT_EQ(found->ns, 10'000);
  // Too little for all 32 MiB, but enough for the 24 MiB of b and d.
  const std::int32_t slots = choices.slots_of(26 * kMiB);
  EXPECT_EQ(SpanTable(choices, 0).ns(slots), 10'000);
  EXPECT_GT(SpanTable(choices, 0, /*priced=*/false).ns(slots), 500'000);
}

class ShippedTable : public ::testing::TestWithParam<std::string> {};

// Recomputes take the time that the table predicts, and about the memory. (The table does not model
// everything: see span_model.h.)
TEST_P(ShippedTable, SaysWhatTheSimulatorFinds) {
  const Program program = load_program(find_program(GetParam()));
  const Hardware card = find_hardware("h100");
  const KeepTrace trace = trace_keep(program, card);
  const SpanModel model = span_model(program, trace);
  ASSERT_FALSE(model.operators.empty());
  sim::SimulationOptions options;
  options.check = false;
  const sim::Simulation keep = sim::simulate(program, card, options);
  // Some blocks are larger than their contents, and the model ignores workspaces.
  const std::int64_t peak_bytes =
      keep.device_peak_bytes - keep.peak_kinds[sim::MemoryKind::kWorkspace];
  EXPECT_LE(model.peak_bytes, peak_bytes);
  EXPECT_GT(model.peak_bytes, peak_bytes / 1000 * 998);
  const SpanChoices choices(model);
  const SpanTable table(choices, 0);
  for (const std::int64_t percent : {90, 80, 70, 60}) {
    const std::int32_t slots = choices.slots_of(model.peak_bytes / 100 * percent);
    ASSERT_TRUE(table.fits(slots));
    options.spans = table.spans(slots);
    const sim::Simulation run = sim::simulate(program, card, options);
    EXPECT_EQ(run.compute_ns - keep.compute_ns, table.ns(slots)) << percent;
    const std::int64_t over = run.device_peak_bytes - model.peak_bytes / 100 * percent;
    EXPECT_LT(std::abs(over), model.peak_bytes / 20) << percent;
  }
}
INSTANTIATE_TEST_SUITE_P(Shipped, ShippedTable, ::testing::Values("unet", "gpt2"));

}  // namespace
}  // namespace ferry::plan
