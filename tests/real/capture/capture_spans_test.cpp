// A plan's spans of operators are the same on the simulated device and on the CPU: the same calls
// are recorded and run again, the same tensors reach the hooks around, in the same order; and
// gradients are the same bits as without a plan.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdint>
#include <string>
#include <vector>

#include "ferry/replay.h"
#include "formats/plan.h"
#include "formats/plan_options.h"
#include "formats/spans.h"
#include "tests/plan/support/spanned.h"
#include "tests/real/capture/models.h"
#include "tests/real/capture/step.h"

namespace ferry::real::capture {
namespace {

void set_names(std::vector<PlanSpan>& spans, const std::vector<std::string>& names) {
  for (PlanSpan& span : spans) {
    span.first_op = names[span.first];
    span.last_op = names[span.last];
    set_names(span.inner, names);
  }
}

// With the operators' names, which are compared.
std::vector<PlanSpan> drawn_spans(choices::Draws& draws, const Program& program) {
  std::vector<std::string> names;
  for (const OperatorRange& range : operator_ranges(program)) {
    const Code& forward = program.codes[*spanned_code(program)];
    names.push_back(std::get<Op>(forward.statements[range.op].action).name);
  }
  std::vector<PlanSpan> spans = test::draw_spans(draws, program);
  set_names(spans, names);
  return spans;
}

std::string text(const ReplayStatistics& counts) {
  return std::to_string(counts.spans) + " spans, " + std::to_string(counts.calls) + " calls, " +
         std::to_string(counts.saved) + " saved, " + std::to_string(counts.passed_on) +
         " passed on, " + std::to_string(counts.held) + " held, " + std::to_string(counts.replays) +
         " replays of " + std::to_string(counts.calls_replayed);
}

ReplayStatistics since(const ReplayStatistics& before) {
  const ReplayStatistics now = replay_statistics();
  return {.spans = now.spans - before.spans,
          .alive = now.alive - before.alive,
          .calls = now.calls - before.calls,
          .calls_left = now.calls_left - before.calls_left,
          .saved = now.saved - before.saved,
          .passed_on = now.passed_on - before.passed_on,
          .held = now.held - before.held,
          .replays = now.replays - before.replays,
          .calls_replayed = now.calls_replayed - before.calls_replayed};
}

class SameSpansTest : public ::testing::TestWithParam<NamedStep> {};

TEST_P(SameSpansTest, UnderDrawnPlans) {
  torch::manual_seed(1);
  const Step step = GetParam().make();
  const Program program = capture_of(step);
  step.module->zero_grad();
  torch::manual_seed(7);
  step.run();
  const std::vector<torch::Tensor> expected = gradients(step);
  for (std::uint64_t round = 0; round < 40; ++round) {
    choices::Draws draws(43, round);
    const std::vector<PlanSpan> spans = drawn_spans(draws, program);
    const Plan plan = every_other_group(program, spans);
    const auto simulated = run_simulated(program, to_options(plan).value(), {}, nullptr, spans);
    const ReplayStatistics before = replay_statistics();
    const auto real = run_real(step, Offload(plan, OffloadOptions().decisions(true)));
    const ReplayStatistics counts = since(before);
    EXPECT_EQ(difference(real, simulated), "") << round;
    EXPECT_EQ(text(counts), text(simulated.result.replays)) << round;
    EXPECT_EQ(counts.alive, 0);
    EXPECT_TRUE(same_bits(gradients(step), expected)) << round;
  }
  if (HasFailure()) std::cerr << to_text(program);
}

INSTANTIATE_TEST_SUITE_P(Steps, SameSpansTest, ::testing::ValuesIn(all_steps()), name_of);

}  // namespace
}  // namespace ferry::real::capture
