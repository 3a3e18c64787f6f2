// Spans of operators in a plain program: what runs again, what stays, and that nothing else
// changes.
#include <gtest/gtest.h>

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "formats/program_file.h"
#include "formats/spans.h"
#include "scenarios/programs.h"
#include "sim/plan/survey.h"
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

TEST(SimulationSpansTest, ASpanThatTheProgramLacksIsRefused) {
  SimulationOptions options;
  options.spans = {{.first = 1, .last = 99}};
  EXPECT_THROW(simulate(five(), test::tiny_hardware(), options), std::invalid_argument);
}

// What hooks around see: what no span makes again, and what the replay of each begins from.
TEST(SimulationSpansTest, TheSurveyIsOfWhatSpansDoNotMakeAgain) {
  const Program program = five();
  const Hardware card = test::tiny_hardware();
  const plan::Survey plain = plan::survey(program, card);
  const plan::Survey ours = plan::survey(program, card, {{.first = 1, .last = 3}});
  std::vector<std::string> nodes;
  for (const plan::PackedTensor& pack : ours.packs) nodes.push_back(pack.node);
  // The program's input; what the span begins with, saved by its first node; that and two weights,
  // which its replay begins from; what operator 3 made.
  EXPECT_EQ(nodes, (std::vector<std::string>{"LayerBackward", "LayerBackward", "replay", "replay",
                                             "replay", "LayerBackward", "LossBackward"}));
  EXPECT_EQ(plain.packs.size(), 6u);
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
