// The spans of PyTorch's knapsack and of torchtitan's selective checkpoints recompute the right
// operators, and their plans run.
#include "plan/field_spans.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "formats/program_file.h"
#include "formats/spans.h"
#include "plan/keep_trace.h"
#include "plan/planner.h"
#include "scenarios/programs.h"
#include "tests/formats/forward.h"
#include "tests/sim/support/graphs.h"
#include "tests/sim/support/tiny.h"

namespace ferry::plan {
namespace {

std::vector<std::string> names_of(const Program& program) {
  std::vector<std::string> names;
  const auto& statements = program.codes[*spanned_code(program)].statements;
  for (const OperatorRange& range : operator_ranges(program)) {
    names.push_back(std::get<Op>(statements[range.op].action).name);
  }
  return names;
}

SpanChoices choices_of(const Program& program) {
  return SpanChoices(span_model(program, trace_keep(program, test::tiny_hardware())));
}

std::int64_t bytes_of(const std::vector<KnapsackItem>& items, const std::vector<bool>& kept) {
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < items.size(); ++i) bytes += kept[i] ? items[i].bytes : 0;
  return bytes;
}
std::int64_t ns_of(const std::vector<KnapsackItem>& items, const std::vector<bool>& kept) {
  std::int64_t ns = 0;
  for (std::size_t i = 0; i < items.size(); ++i) ns += kept[i] ? items[i].ns : 0;
  return ns;
}

TEST(FieldSpansTest, TheGreedyTakesTheDearestBytesFirst) {
  const std::vector<KnapsackItem> items = {{10, 10}, {60, 20}, {90, 30}};
  EXPECT_EQ(greedy_knapsack(items, 50), (std::vector{false, true, true}));
  EXPECT_EQ(greedy_knapsack(items, 40), (std::vector{true, true, false}));
  EXPECT_EQ(greedy_knapsack(items, 0), (std::vector{false, false, false}));
}

TEST(FieldSpansTest, TheProgramFindsWhatTheGreedyDoesNot) {
  const std::vector<KnapsackItem> items = {{60, 10}, {100, 20}, {120, 30}};
  EXPECT_EQ(greedy_knapsack(items, 51), (std::vector{true, true, false}));
  EXPECT_EQ(dp_knapsack(items, 51), (std::vector{false, true, true}));
}

// Compares the knapsack with all sets of a few items: no set within the bytes has more time. The
// sizes fill slots exactly.
RC_GTEST_PROP(FieldSpansProp, NoSetWithinTheBytesTakesLonger, ()) {
  const auto count = *rc::gen::resize(100, rc::gen::inRange<std::size_t>(1, 9));
  std::vector<KnapsackItem> items;
  std::int64_t all = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto bytes = *rc::gen::resize(100, rc::gen::inRange<std::int64_t>(1, 60));
    items.push_back({*rc::gen::resize(100, rc::gen::inRange<std::int64_t>(1, 100)), bytes});
    all += bytes;
  }
  // One more item without time fills up to 999 bytes, so that a slot is one byte.
  items.push_back({0, 999 - all});
  const auto room = *rc::gen::resize(100, rc::gen::inRange<std::int64_t>(0, all + 1));
  const std::vector<bool> kept = dp_knapsack(items, room);
  RC_ASSERT(bytes_of(items, kept) <= room);
  RC_ASSERT(bytes_of(items, greedy_knapsack(items, room)) <= room);
  for (std::uint32_t set = 0; set < (1U << count); ++set) {
    std::vector<bool> other(items.size(), false);
    for (std::size_t i = 0; i < count; ++i) other[i] = (set >> i & 1U) != 0;
    if (bytes_of(items, other) <= room) RC_ASSERT(ns_of(items, other) <= ns_of(items, kept));
  }
}

TEST(FieldSpansTest, ProductsConvolutionsAndAttentionAreDear) {
  for (const char* name :
       {"aten.mm", "aten.addmm.default", "aten.convolution", "mm",
        "aten._scaled_dot_product_flash_attention", "aten._efficient_attention_forward"}) {
    EXPECT_TRUE(is_compute_intensive(name)) << name;
  }
  for (const char* name : {"aten.add", "aten.mul", "aten.native_layer_norm", "aten.mmm", "aten"}) {
    EXPECT_FALSE(is_compute_intensive(name)) << name;
  }
}

class FieldSpansShippedTest : public ::testing::TestWithParam<const char*> {
 protected:
  const Program program_ = load_program(find_program(GetParam()));
  const SpanChoices choices_ = choices_of(program_);
  const std::vector<std::string> names_ = names_of(program_);
};

bool keeps(const PlanSpan& span, std::uint64_t place) {
  return std::ranges::binary_search(span.keep, place);
}

// In each block the first matrix product is kept, the second is recomputed, and so on. Attention is
// kept.
TEST_P(FieldSpansShippedTest, EverySecondProductOfABlockRunsAgain) {
  const std::vector<PlanSpan> spans = selective_spans(program_, choices_, names_);
  ASSERT_FALSE(spans.empty());
  EXPECT_EQ(span_ranges(program_, spans).size(), spans.size());
  std::size_t all_again = 0;
  for (const PlanSpan& span : spans) {
    std::size_t kept = 0, again = 0;
    for (std::uint64_t place = span.first; place <= span.last; ++place) {
      const std::string& name = names_[place];
      const bool product = name.ends_with("mm");
      if (product) {
        EXPECT_EQ(keeps(span, place), (kept + again) % 2 == 0) << place;  // norms come first
        ++(keeps(span, place) ? kept : again);
      }
      if (!product && is_compute_intensive(name)) {
        EXPECT_TRUE(keeps(span, place)) << name;
      }
      if (!is_compute_intensive(name) && choices_.operators() == names_.size()) {
        EXPECT_EQ(keeps(span, place), !choices_.runs_again(place)) << place << " " << name;
      }
    }
    all_again += again;
  }
  EXPECT_GT(all_again, 0u);
}

// With no bytes many matrix products are recomputed; with all bytes, none.
TEST_P(FieldSpansShippedTest, TheKnapsackKeepsProductsOnly) {
  const std::vector<std::vector<PlanSpan>> all = knapsack_spans(choices_, names_);
  ASSERT_GT(all.size(), 10u);
  const auto products_again = [&](const std::vector<PlanSpan>& spans) {
    std::size_t again = 0;
    for (const PlanSpan& span : spans) {
      for (std::uint64_t place = span.first; place <= span.last; ++place) {
        again += is_compute_intensive(names_[place]) && !keeps(span, place);
      }
    }
    return again;
  };
  std::size_t least = names_.size(), most = 0;
  for (const std::vector<PlanSpan>& spans : all) {
    EXPECT_EQ(span_ranges(program_, spans).size(), spans.size());
    least = std::min(least, products_again(spans));
    most = std::max(most, products_again(spans));
  }
  EXPECT_GT(most, 10u);
  EXPECT_EQ(least, 0u);
}

TEST_P(FieldSpansShippedTest, BestIsNotBehindThem) {
  const Hardware card = find_hardware("h100");
  PlanRequest request;
  request.policies = {Policy::kKeep, Policy::kSelective, Policy::kKnapsack, Policy::kBest};
  request.training.steps = 1;
  request.check = true;
  sim::SimulationOptions options;
  const std::vector<std::uint64_t> gradients = sim::simulate(program_, card, options).gradients;
  options.check = false;
  const std::int64_t keep = sim::simulate(program_, card, options).device_reserved_bytes;
  request.budget_bytes = keep / 4 * 3;
  const PlanResult result = plan(program_, card, request);
  ASSERT_EQ(result.rows.size(), 4u);
  for (const PolicyRow& row : result.rows) {
    EXPECT_TRUE(row.is_safe()) << row.policy;
    if (row.policy == "keep") continue;  // its program has segments, so its digests differ
    EXPECT_EQ(row.simulation.gradients, gradients) << row.policy;
  }
  const PolicyRow& best = result.rows.back();
  ASSERT_TRUE(best.is_answer());
  for (const PolicyRow& row : result.rows) {
    if (!row.is_answer()) continue;
    EXPECT_LE(best.simulation.step_ns, row.simulation.step_ns) << row.policy;
  }
  EXPECT_GT(result.rows[1].simulation.replays.calls_replayed, 0);
  EXPECT_GT(result.rows[2].simulation.replays.calls_replayed, 0);
}

INSTANTIATE_TEST_SUITE_P(Programs, FieldSpansShippedTest, ::testing::Values("gpt2", "llama3-8b"));

// The operators of called code are not operators of the forward.
TEST(FieldSpansTest, AForwardThatCallsOtherCodeIsRefused) {
  const Program program = test::chain_of(test::random_stages(3, 1), 1 << 20, true);
  EXPECT_TRUE(has_operators(program));
  EXPECT_FALSE(has_operators(with_segments(program)));
}

}  // namespace
}  // namespace ferry::plan
