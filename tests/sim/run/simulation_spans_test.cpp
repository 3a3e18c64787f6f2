// Spans of operators in a plain program: what runs again, what stays, and that nothing else
// changes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "formats/program_file.h"
#include "formats/spans.h"
#include "scenarios/programs.h"
#include "sim/run/simulation.h"
#include "tests/sim/support/tiny.h"

namespace ferry::sim {
namespace {

struct Outcome {
  Simulation simulation;
  std::map<std::string, int> kernels;
};

Outcome run(const Program& program, std::vector<PlanSpan> spans,
            const Hardware& hardware = test::tiny_hardware()) {
  test::OpLog log;
  SimulationOptions options;
  options.spans = std::move(spans);
  options.consumers = {&log};
  Outcome outcome{simulate(program, hardware, options), {}};
  for (const std::string& name : log.kernels()) ++outcome.kernels[name];
  EXPECT_TRUE(outcome.simulation.errors.empty());
  EXPECT_TRUE(outcome.simulation.hazards.empty());
  EXPECT_FALSE(outcome.simulation.leftovers.any());
  return outcome;
}

// Five layers; each node saves the layer's input, and so the tensor before it.
Program five() { return test::chain({.layers = 5, .elements = 1 << 18, .weight_elements = 64}); }

TEST(SimulationSpansTest, WhatASpanSavesOfItsOwnIsMadeAgain) {
  const Outcome plain = run(five(), {});
  const Outcome ours = run(five(), {{.first = 1, .last = 3}});
  EXPECT_EQ(ours.kernels.at("layer"), plain.kernels.at("layer") + 2)
      << "operator 4 saves what 3 made, and is no part of the span";
  EXPECT_EQ(ours.simulation.replays.replays, 1);
  EXPECT_EQ(ours.simulation.gradients, plain.simulation.gradients);
  EXPECT_LT(ours.simulation.device_peak_bytes, plain.simulation.device_peak_bytes);
}

TEST(SimulationSpansTest, AKeptOperatorDoesNotRunAgain) {
  const Outcome plain = run(five(), {});
  const Outcome ours = run(five(), {{.first = 1, .last = 3, .keep = {1}}});
  EXPECT_EQ(ours.kernels.at("layer"), plain.kernels.at("layer") + 1);
  EXPECT_EQ(ours.simulation.gradients, plain.simulation.gradients);
}

TEST(SimulationSpansTest, AnOperatorThatRunsOnceDoesNotRunAgain) {
  Program program = five();
  Code& forward = program.codes[*spanned_code(program)];
  std::get<Op>(forward.statements[operator_ranges(program)[2].op].action).once = true;
  const Outcome plain = run(program, {});
  const Outcome ours = run(program, {{.first = 1, .last = 3}});
  EXPECT_EQ(ours.kernels.at("layer"), plain.kernels.at("layer") + 1);
  EXPECT_EQ(ours.simulation.gradients, plain.simulation.gradients);
}

TEST(SimulationSpansTest, SpansReplayEachForItself) {
  const Outcome ours = run(five(), {{.first = 0, .last = 1}, {.first = 2, .last = 4}});
  EXPECT_EQ(ours.simulation.replays.replays, 2);
  EXPECT_EQ(ours.simulation.gradients, run(five(), {}).simulation.gradients);
}

// Two micro-batches are two forwards.
TEST(SimulationSpansTest, EachForwardHasTheSpans) {
  Program twice = five();
  std::vector<Statement>& main = twice.codes[twice.main].statements;
  const std::vector<Statement> step = main;
  main.insert(main.end(), step.begin(), step.end());
  for (std::size_t i = step.size(); i < main.size(); ++i) {
    if (auto* call = std::get_if<Call>(&main[i].action)) ++call->out[0];
    if (auto* backward = std::get_if<Backward>(&main[i].action)) ++backward->roots[0];
  }
  EXPECT_EQ(run(twice, {{.first = 1, .last = 3}}).simulation.replays.replays, 2);
}

// Another code may call the one that is the forward.
TEST(SimulationSpansTest, OnlyWhatMainCallsIsAForward) {
  Program program = five();
  const Call direct = std::get<Call>(program.codes[program.main].statements.front().action);
  const auto globals = static_cast<Slot>(program.globals.size());
  Code around{CodeKind::kSegment, "around", {}, {}, {globals}, {}, 0};
  around.statements.push_back({Call{direct.code, {}, {globals}}, 0});
  const auto id = static_cast<CodeId>(program.codes.size());
  program.codes.push_back(around);
  const Slot loss = direct.out.front() + 1;
  std::vector<Statement>& main = program.codes[program.main].statements;
  main.push_back({Call{id, {}, {loss}}, 0});
  main.push_back({Backward{{loss}, {}, {}, false, false}, 0});
  const Outcome ours = run(program, {{.first = 1, .last = 3}});
  EXPECT_EQ(ours.simulation.replays.replays, 1);
}

// Of operators 0 to 3 the outer replay makes what the second inner span begins from, and no more.
TEST(SimulationSpansTest, AnInnerSpanIsMadeAgainWithinTheOuterOne) {
  PlanSpan outer{.first = 0, .last = 4};
  outer.inner = {{.first = 0, .last = 1}, {.first = 2, .last = 4}};
  const Outcome plain = run(five(), {});
  const Outcome ours = run(five(), {outer});
  EXPECT_EQ(ours.simulation.replays.replays, 3);
  // 0 and 1 in the outer one's; 0 in the first inner one's; 2 and 3 in the second's.
  EXPECT_EQ(ours.kernels.at("layer"), plain.kernels.at("layer") + 5);
  EXPECT_EQ(ours.simulation.gradients, plain.simulation.gradients);
}

TEST(SimulationSpansTest, WhatAnInnerSpanKeepsRunsAgainInTheOuterOne) {
  PlanSpan outer{.first = 0, .last = 4};
  outer.inner = {{.first = 0, .last = 1}, {.first = 2, .last = 4, .keep = {2}}};
  const Outcome plain = run(five(), {});
  const Outcome inner = run(five(), {outer});
  EXPECT_EQ(inner.kernels.at("layer"), plain.kernels.at("layer") + 5) << "0 to 2; 3; 0";
  EXPECT_EQ(inner.simulation.gradients, plain.simulation.gradients);
  outer.keep = {2};
  const Outcome both = run(five(), {outer});
  EXPECT_EQ(both.kernels.at("layer"), plain.kernels.at("layer") + 4) << "2 runs once";
  EXPECT_EQ(both.simulation.gradients, plain.simulation.gradients);
}

// A chain of equal layers: in one level of spans it needs what the square root of them saves. A
// tree of spans needs what its depth does.
TEST(SimulationSpansTest, NestedSpansNeedLessMemoryThanAnyThatDoNotNest) {
  constexpr std::uint64_t kLayers = 27;
  const Program program =
      test::chain({.layers = kLayers, .elements = 1 << 18, .weight_elements = 64});
  const auto thirds = [](std::uint64_t first, std::uint64_t last, std::size_t levels,
                         const auto& self) -> std::vector<PlanSpan> {
    const std::uint64_t third = (last + 1 - first) / 3;
    std::vector<PlanSpan> spans;
    for (std::uint64_t i = 0; levels > 0 && i < 3; ++i) {
      PlanSpan span{.first = first + i * third, .last = first + (i + 1) * third - 1};
      span.inner = self(span.first, span.last, levels - 1, self);
      spans.push_back(std::move(span));
    }
    return spans;
  };
  const Outcome plain = run(program, {});
  const Outcome nested = run(program, thirds(0, kLayers - 1, 2, thirds));
  EXPECT_EQ(nested.simulation.gradients, plain.simulation.gradients);
  for (std::uint64_t length = 1; length <= kLayers; ++length) {
    std::vector<PlanSpan> row;
    for (std::uint64_t first = 0; first < kLayers; first += length) {
      row.push_back({.first = first, .last = std::min(first + length, kLayers) - 1});
    }
    EXPECT_LT(nested.simulation.device_peak_bytes, run(program, row).simulation.device_peak_bytes)
        << length;
  }
}

TEST(SimulationSpansTest, ASpanThatTheProgramLacksIsRefused) {
  SimulationOptions options;
  options.spans = {{.first = 1, .last = 99}};
  EXPECT_THROW(simulate(five(), test::tiny_hardware(), options), std::invalid_argument);
}

class ShippedSpans : public ::testing::TestWithParam<std::string> {};

// Half of the operators in spans of five, every third of them kept.
TEST_P(ShippedSpans, AreExecutedToTheSameGradients) {
  const Program program = load_program(find_program(GetParam()));
  const Hardware card = find_hardware("h100");
  std::vector<PlanSpan> spans;
  const auto ranges = operator_ranges(program);
  for (std::size_t i = 0; i + 10 < ranges.size(); i += 10) {
    PlanSpan span{.first = i, .last = i + 4, .keep = {i + 1, i + 4}};
    for (std::size_t op = i; op < i + 4; ++op) {
      if (!ranges[op].joins_next && span.last > op) span.last = op;
    }
    std::erase_if(span.keep, [&](std::uint64_t op) { return op > span.last; });
    spans.push_back(span);
  }
  const Outcome ours = run(program, spans, card);
  const Outcome plain = run(program, {}, card);
  EXPECT_EQ(ours.simulation.gradients, plain.simulation.gradients);
  EXPECT_GT(ours.simulation.replays.calls_replayed, 10);
  EXPECT_LT(ours.simulation.device_peak_bytes, plain.simulation.device_peak_bytes);
}
INSTANTIATE_TEST_SUITE_P(Shipped, ShippedSpans, ::testing::Values("unet", "gpt2"));

}  // namespace
}  // namespace ferry::sim
