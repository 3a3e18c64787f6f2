// Spans within spans: an inner one's replay begins from what the outer one's replay made for it,
// when its part of backward comes, and the outer one makes nothing else for it.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

#include "shared/replay/replayer.h"
#include "sim/choices/strategies.h"
#include "sim/run/simulation.h"
#include "sim/run/training/test_hardware.h"
#include "tests/sim/support/layers.h"

namespace ferry::test {
namespace {

struct Ran {
  sim::Simulation result;
  Census census;
  int of(const std::string& op) { return census.runs[op]; }
};
Ran run(Layers program, Rules rules = {}) {
  Ran run;
  sim::SimulationOptions options;
  options.consumers = {&run.census};
  options.rules = rules;
  run.result = sim::simulate(program.take(), sim::test_hardware(), options);
  EXPECT_TRUE(run.result.hazards.empty());
  EXPECT_TRUE(run.result.errors.empty());
  EXPECT_FALSE(run.result.leftovers.any());
  return run;
}

// An outer span of two inner ones of layers a and b, and c and d; `times` backwards. Each layer
// saves its input.
Layers two_inner(Recompute inner, int times = 1, Recompute outer = Recompute::kReplay) {
  Layers p;
  const CodeId first = p.segment_of({"a", "b"});
  const CodeId second = p.segment_of({"c", "d"});
  const CodeId id = p.segment();
  const Slot x = p.b.argument(id);
  const Slot y = p.call(id, first, {x}, inner)[0];
  p.b.add(id, Free{{x}});
  const Slot z = p.call(id, second, {y}, inner)[0];
  p.b.add(id, Free{{y}});
  p.b.result(id, z);
  const Slot out = p.call(0, id, {p.begin()}, outer)[0];
  p.op(0, "after", out);
  for (int i = 0; i < times; ++i) p.backward(out, i + 1 < times);
  return p;
}

TEST(NestedSpansTest, TheOuterOneMakesWhatTheInnerOnesBeginFrom) {
  Ran ours = run(two_inner(Recompute::kReplay));
  EXPECT_EQ(ours.of("a"), 3) << "for what the second begins from, and for b's input";
  EXPECT_EQ(ours.of("b"), 2) << "its output is what the second begins from";
  EXPECT_EQ(ours.of("c"), 2) << "in the second's replay alone";
  EXPECT_EQ(ours.of("d"), 1);
  EXPECT_EQ(ours.result.replays.replays, 3);
  EXPECT_EQ(ours.result.gradients, run(two_inner(Recompute::kNone)).result.gradients);
}

TEST(NestedSpansTest, BetweenForwardAndBackwardOnlyTheOuterOnesInputIsAlive) {
  const int nested = run(two_inner(Recompute::kReplay)).census.alive_at["after"];
  EXPECT_EQ(nested, run(two_inner(Recompute::kNone)).census.alive_at["after"]);
  const Ran side_by_side = run(two_inner(Recompute::kReplay, 1, Recompute::kNone));
  EXPECT_EQ(side_by_side.census.alive_at.at("after") - nested, 1) << "the second one's input";
}

TEST(NestedSpansTest, EachBackwardReplaysAllOfThemOnce) {
  Ran ours = run(two_inner(Recompute::kReplay, 3));
  EXPECT_EQ(ours.of("a"), 7);
  EXPECT_EQ(ours.of("c"), 4);
  EXPECT_EQ(ours.result.replays.replays, 9);
  EXPECT_EQ(ours.result.gradients, run(two_inner(Recompute::kNone, 3)).result.gradients);
}

// A row of spans of so many layers each, in one around all of them.
Layers row(int spans, int layers, bool retain = false) {
  Layers p;
  const CodeId id = p.segment();
  Slot x = p.b.argument(id);
  for (int i = 0; i < spans; ++i) {
    const CodeId inner = p.segment();
    Slot y = p.b.argument(inner);
    for (int layer = 0; layer < layers; ++layer) {
      const Slot next = p.layer(inner, "layer", y);
      p.b.add(inner, Free{{y}});
      y = next;
    }
    p.b.result(inner, y);
    const Slot z = p.call(id, inner, {x}, Recompute::kReplay)[0];
    p.b.add(id, Free{{x}});
    x = z;
  }
  p.b.result(id, x);
  p.backward(p.call(0, id, {p.begin()}, Recompute::kReplay)[0], retain);
  return p;
}

// What an inner span begins from goes with its replay, so only one of them is made again at a time.
TEST(NestedSpansTest, WhatAnInnerOneBeginsFromGoesWithItsReplay) {
  const auto peak = [](int spans, int layers) { return run(row(spans, layers)).census.peak; };
  EXPECT_EQ(peak(4, 9) - peak(4, 4), 5);
  EXPECT_EQ(peak(9, 4) - peak(4, 4), 5);
  Ran ours = run(row(4, 4));
  // The outer one's: all but the last span's. The inner ones': all but the last layer.
  EXPECT_EQ(ours.of("layer"), 16 + 12 + 4 * 3);
  const Ran kept = run(row(4, 4, /*retain=*/true), Rules::without(Rule::kFreeUnpacked));
  EXPECT_GT(kept.census.peak, run(row(4, 4, /*retain=*/true)).census.peak);
}

// Backward's kernels, before and after "between".
class Grads final : public StreamOpConsumer {
 public:
  void operator()(const StreamOp& op) override {
    if (op.kind != StreamOpKind::kKernel) return;
    if (op.name == "between") is_after_ = true;
    if (op.name == "grad") ++(is_after_ ? after : before);
  }
  int before = 0;
  int after = 0;

 private:
  bool is_after_ = false;
};

// Whatever allocation fails in the first backward, the second one is whole: the graph is retained.
TEST(NestedSpansTest, AReplayThatFailsLeavesWhatTheNextOneNeeds) {
  const auto program = [] {
    Layers p = two_inner(Recompute::kReplay, 0);
    const Slot out = std::get<Call>(p.b.program.codes[0].statements[2].action).out[0];
    p.backward(out, true);
    p.op(0, "between", out);
    p.backward(out);
    return p.take();
  };
  int in_replays = 0;
  for (std::uint64_t nth = 0;; ++nth) {
    Grads grads;
    choices::OneFailure choices(nth);
    sim::SimulationOptions options;
    options.consumers = {&grads};
    options.choices = &choices;
    const sim::Simulation ours = sim::simulate(program(), sim::test_hardware(), options);
    EXPECT_TRUE(ours.hazards.empty()) << nth;
    EXPECT_FALSE(ours.leftovers.any()) << nth;
    if (ours.errors.empty()) break;
    const bool forward_failed = grads.before == 0 && grads.after == 0;
    if (forward_failed || grads.before >= 10) continue;
    EXPECT_EQ(grads.after, 10) << nth;
    in_replays += ours.replays.replays > 3 ? 1 : 0;
  }
  EXPECT_GE(in_replays, 4) << "a, b, c and a again run in replays, and each allocates";
}

// The outer one runs on one stream, the inner one on another, and backward on the first again.
TEST(NestedSpansTest, AnInnerOneMayRunOnAnotherStream) {
  const auto program = [](Recompute recompute) {
    Layers p;
    const CodeId inner = p.segment_of({"a", "b"});
    const CodeId id = p.segment();
    const Slot x = p.b.argument(id);
    const Slot y = p.layer(id, "before", p.layer(id, "first", x));
    p.b.add(id, Sync{0, 1});
    p.b.add(id, SetStream{1});
    const Slot z = p.call(id, inner, {y}, recompute)[0];
    p.b.add(id, Sync{1, 0});
    p.b.add(id, SetStream{0});
    p.b.result(id, z);
    p.backward(p.call(0, id, {p.begin()}, recompute)[0]);
    return p;
  };
  Ran ours = run(program(Recompute::kReplay));
  EXPECT_EQ(ours.of("a"), 2);
  EXPECT_EQ(ours.of("before"), 2) << "what the inner one begins from";
  EXPECT_EQ(ours.result.gradients, run(program(Recompute::kNone)).result.gradients);
}

}  // namespace
}  // namespace ferry::test
