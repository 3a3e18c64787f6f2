// Spans on the simulated device: which ops run again, how often, and what is alive meanwhile.
#include "shared/replay/replayer.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "sim/run/simulation.h"
#include "sim/run/training/test_hardware.h"
#include "tests/sim/support/layers.h"

namespace ferry::test {
namespace {

struct Ran {
  sim::Simulation result;
  Census census;
  int of(const std::string& op) const {
    const auto found = census.runs.find(op);
    return found == census.runs.end() ? 0 : found->second;
  }
};
Ran run(Layers program, Rules rules = {}, std::shared_ptr<const SegmentPlan> plan = nullptr) {
  Ran run;
  sim::SimulationOptions options;
  options.segments = std::move(plan);
  options.consumers = {&run.census};
  options.rules = rules;
  run.result = sim::simulate(program.take(), sim::test_hardware(), options);
  EXPECT_TRUE(run.result.hazards.empty());
  EXPECT_FALSE(run.result.leftovers.any());
  return run;
}

// A span of layers `a`, `b` and `c`, each of which saves its input; `times` backwards.
Layers chain(Recompute recompute, int times = 1) {
  Layers p;
  const Slot y = p.call(0, p.segment_of({"a", "b", "c"}), {p.begin()}, recompute)[0];
  for (int i = 0; i < times; ++i) p.backward(y, i + 1 < times);
  return p;
}

TEST(ReplayerTest, OnlyOpsThatMadeWhatIsSavedRunAgain) {
  const Ran ours = run(chain(Recompute::kReplay));
  EXPECT_EQ(ours.of("a"), 2);
  EXPECT_EQ(ours.of("b"), 2);
  EXPECT_EQ(ours.of("c"), 1) << "its output is saved by nobody";
  EXPECT_EQ(ours.of("begin"), 1) << "it lies outside";
  EXPECT_EQ(ours.result.replays.calls, 3);
  EXPECT_EQ(ours.result.replays.calls_left, 2);
  EXPECT_EQ(ours.result.replays.calls_replayed, 2);
}

TEST(ReplayerTest, GradientsAreThoseOfAPlainCall) {
  EXPECT_EQ(run(chain(Recompute::kReplay)).result.gradients,
            run(chain(Recompute::kNone)).result.gradients);
}

TEST(ReplayerTest, EachBackwardReplaysOnce) {
  const Ran ours = run(chain(Recompute::kReplay, 3));
  EXPECT_EQ(ours.of("a"), 4);
  EXPECT_EQ(ours.result.replays.replays, 3);
  EXPECT_EQ(ours.result.gradients, run(chain(Recompute::kNone, 3)).result.gradients);
}

TEST(ReplayerTest, BetweenForwardAndBackwardOnlyItsInputIsAlive) {
  const auto alive_after = [](Recompute recompute) {
    Layers p;
    Slot y = p.call(0, p.segment_of({"a", "b", "c", "d", "e"}), {p.begin()}, recompute)[0];
    p.op(0, "after", y);
    p.backward(y);
    return run(std::move(p)).census.alive_at["after"];
  };
  EXPECT_EQ(alive_after(Recompute::kNone) - alive_after(Recompute::kReplay), 4);
}

// The last kernel of backward is the first layer's, outside. The graph is retained.
TEST(ReplayerTest, AResultGoesWhenItIsUnpacked) {
  const auto alive = [](Rules rules) {
    Layers p;
    p.backward(p.call(0, p.segment_of({"a", "b", "c"}), {p.begin()}, Recompute::kReplay)[0], true);
    return run(std::move(p), rules).census.alive_at["grad"];
  };
  EXPECT_EQ(alive(Rules::without(Rule::kFreeUnpacked)) - alive({}), 2);
}

// The second head's, where backward begins at the first.
TEST(ReplayerTest, AResultThatNobodyUnpacksGoesWithItsTask) {
  const auto alive = [](Rules rules) {
    Layers p;
    const CodeId id = p.segment();
    const Slot x = p.b.argument(id);
    for (int head = 0; head < 2; ++head) {
      const Slot y = p.layer(id, "before", x);
      p.b.result(id, p.layer(id, "head", y));
      p.b.add(id, Free{{y}});
    }
    const auto heads = p.call(0, id, {p.begin()}, Recompute::kReplay);
    p.backward(heads[0], /*retain=*/true);
    p.op(0, "after", heads[1]);
    p.backward(heads[1]);
    return run(std::move(p), rules).census.alive_at["after"];
  };
  EXPECT_EQ(alive(Rules::without(Rule::kFreeAtEnd)) - alive({}), 1);
}

TEST(ReplayerTest, WithoutItsRuleEverythingRunsAgain) {
  EXPECT_EQ(run(chain(Recompute::kReplay), Rules::without(Rule::kStopEarly)).of("c"), 2);
}

// Its outputs: what an op made that nobody needs in backward is let go within the replay.
TEST(ReplayerTest, WhatLiesBetweenGoesWithItsLastUse) {
  const auto peak = [](int ops) {
    Layers p;
    const CodeId id = p.segment();
    Slot x = p.b.argument(id);
    for (int i = 0; i < ops; ++i) {
      const Slot y = p.op(id, "between", x);
      p.b.add(id, Free{{x}});
      x = y;
    }
    const Slot y = p.layer(id, "last", x);
    p.b.add(id, Free{{x}});
    p.b.result(id, y);
    p.backward(p.call(0, id, {p.begin()}, Recompute::kReplay)[0]);
    const Ran ours = run(std::move(p));
    EXPECT_EQ(ours.of("between"), 2 * ops);
    return ours.census.peak;
  };
  EXPECT_EQ(peak(3), peak(12));
}

TEST(ReplayerTest, RandomNumbersAreThoseOfForward) {
  const auto program = [](Recompute recompute) {
    Layers p;
    const CodeId id = p.segment();
    const Slot x = p.b.argument(id);
    p.b.result(id, p.layer(id, "after", p.dropout(id, p.layer(id, "before", x))));
    const Slot y = p.call(0, id, {p.begin()}, recompute)[0];
    p.backward(p.dropout(0, y));
    return p;
  };
  const Ran ours = run(program(Recompute::kReplay));
  EXPECT_EQ(ours.result.gradients, run(program(Recompute::kNone)).result.gradients);
  EXPECT_EQ(ours.of("draw"), 3) << "two in forward, and that of the span again";
}

// y = a(x); y is written; b saves it: the write runs again, in its place.
TEST(ReplayerTest, AWriteOfWhatItMadeIsReplayed) {
  const auto program = [](Recompute recompute) {
    Layers p;
    const CodeId id = p.segment();
    const Slot x = p.b.argument(id);
    const Slot y = p.layer(id, "a", x);
    p.b.add(id, Op{"write", {y}, {}, {}, {0}, 0, 0, 0, 0});
    p.b.result(id, p.layer(id, "b", y));
    p.backward(p.call(0, id, {p.begin()}, recompute)[0]);
    return p;
  };
  const Ran ours = run(program(Recompute::kReplay));
  EXPECT_EQ(ours.of("write"), 2);
  EXPECT_EQ(ours.result.gradients, run(program(Recompute::kNone)).result.gradients);
}

// b reads y before it is written and saves what it makes of it: its argument is as it was then.
TEST(ReplayerTest, AReadBeforeAWriteSeesWhatWasThere) {
  const auto program = [](Recompute recompute) {
    Layers p;
    const CodeId id = p.segment();
    const Slot x = p.b.argument(id);
    const Slot y = p.op(id, "made", x);
    const Slot z = p.op(id, "read", y);
    p.b.add(id, Op{"write", {y}, {}, {}, {0}, 0, 0, 0, 0});
    const Slot a = p.layer(id, "saves z", z);
    p.b.add(id, Free{{y, z}});
    p.b.result(id, a);
    p.backward(p.call(0, id, {p.begin()}, recompute)[0]);
    return p;
  };
  const Ran ours = run(program(Recompute::kReplay));
  EXPECT_EQ(ours.of("write"), 1) << "nobody needs it";
  EXPECT_EQ(ours.of("read"), 2);
  EXPECT_EQ(ours.result.gradients, run(program(Recompute::kNone)).result.gradients);
}

TEST(ReplayerTest, ASavedTensorWrittenSinceItWasSavedIsRefused) {
  const auto errors = [](Rules rules) {
    Layers p;
    const CodeId id = p.segment();
    const Slot y = p.op(id, "made", p.b.argument(id));
    p.b.result(id, p.layer(id, "saves y", y));
    p.b.result(id, y);
    const auto out = p.call(0, id, {p.begin()}, Recompute::kReplay);
    p.b.add(0, Op{"write", {out[1]}, {}, {}, {0}, 0, 0, 0, 0});
    p.backward(out[0]);
    return sim::messages(run(std::move(p), rules).result).size();
  };
  EXPECT_EQ(errors({}), 1u);
  EXPECT_EQ(errors(Rules::without(Rule::kCheckVersion)), 0u);
}

TEST(ReplayerTest, AnInputWrittenSinceItWasReadIsRefused) {
  Layers p;
  const CodeId id = p.segment();
  const Slot x = p.b.argument(id);
  const Slot y = p.op(id, "made", x);
  p.b.result(id, p.layer(id, "saves y", y));
  p.b.add(id, Free{{y}});
  const Slot in = p.op(0, "outside", p.input);
  const Slot out = p.call(0, id, {in}, Recompute::kReplay)[0];
  p.b.add(0, Op{"write", {in}, {}, {}, {0}, 0, 0, 0, 0});
  p.backward(out);
  const auto errors = sim::messages(run(std::move(p)).result);
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_NE(errors[0].find("modified by an inplace operation"), std::string::npos) << errors[0];
}

// It is written before the span ends, and goes to no hooks around: these would take it as it is.
TEST(ReplayerTest, NorMayTheSpanWriteItAfterwards) {
  for (const bool offload : {false, true}) {
    Layers p;
    const CodeId id = p.segment();
    const Slot x = p.b.argument(id);
    const Slot y = p.op(id, "made", x);
    p.b.result(id, p.layer(id, "saves y", y));
    p.b.add(id, Op{"write", {x}, {}, {}, {0}, 0, 0, 0, 0});
    p.b.add(id, Free{{y}});
    p.backward(p.call(0, id, {p.op(0, "outside", p.input)}, Recompute::kReplay)[0]);
    sim::SimulationOptions options;
    if (offload) options.offload.emplace();
    const sim::Simulation ours = sim::simulate(p.take(), sim::test_hardware(), options);
    EXPECT_TRUE(ours.hazards.empty()) << to_string(ours.hazards.front());
    ASSERT_EQ(ours.errors.size(), 1u);
    EXPECT_NE(ours.errors[0].message.find("modified by an inplace operation"), std::string::npos);
  }
}

// An op of the span writes its input: what it makes is kept, and so is what is computed from it.
TEST(ReplayerTest, AWriteFromOutsideIsNotReplayed) {
  const auto program = [](Recompute recompute) {
    Layers p;
    const CodeId id = p.segment();
    const Slot x = p.b.argument(id);
    p.b.add(id, Op{"write", {x}, {}, {}, {0}, 0, 0, 0, 0});
    const Slot y = p.op(id, "made", x);
    p.b.result(id, p.layer(id, "saves y", y));
    p.backward(p.call(0, id, {p.op(0, "outside", p.input)}, recompute)[0]);
    return p;
  };
  const Ran ours = run(program(Recompute::kReplay));
  EXPECT_EQ(ours.of("write"), 1);
  EXPECT_EQ(ours.of("made"), 2) << "its argument is held, as it was when it was read";
  EXPECT_EQ(ours.result.gradients, run(program(Recompute::kNone)).result.gradients);
}

// An op that makes something as well must not write the program's tensor once more.
TEST(ReplayerTest, AnOpThatWritesFromOutsideAndMakesIsKept) {
  const auto program = [](Recompute recompute) {
    Layers p;
    const CodeId id = p.segment();
    const Slot x = p.b.argument(id);
    const Slot y = p.b.slot(id);
    p.b.add(id, Op{"write and make", {x}, {y}, {p.big}, {0}, 0, 0, 0, 0});
    p.b.result(id, p.layer(id, "saves y", y));
    p.backward(p.call(0, id, {p.op(0, "outside", p.input)}, recompute)[0]);
    return p;
  };
  const Ran ours = run(program(Recompute::kReplay));
  EXPECT_EQ(ours.of("write and make"), 1);
  EXPECT_EQ(ours.result.gradients, run(program(Recompute::kNone)).result.gradients);
}

// What another stream wrote is kept, though this one made it: that op does not run again.
TEST(ReplayerTest, AWriteOnAnotherStreamMakesItATensorFromOutside) {
  const auto program = [](Recompute recompute) {
    Layers p;
    const CodeId id = p.segment();
    const Slot y = p.op(id, "made", p.b.argument(id));
    p.b.add(id, Sync{0, 1});
    p.b.add(id, SetStream{1});
    p.b.add(id, Op{"side write", {y}, {}, {}, {0}, 0, 0, 0, 0});
    p.b.add(id, SetStream{0});
    p.b.add(id, Sync{1, 0});
    p.b.result(id, p.layer(id, "saves y", y));
    p.backward(p.call(0, id, {p.begin()}, recompute)[0]);
    return p;
  };
  const Ran ours = run(program(Recompute::kReplay));
  EXPECT_EQ(ours.of("side write"), 1);
  EXPECT_EQ(ours.of("made"), 1);
  EXPECT_EQ(ours.result.gradients, run(program(Recompute::kNone)).result.gradients);
}

// One layer's node runs on the side stream. Where it is the first to unpack, the other one's result
// was computed by its replay, and that node knows nothing of the side stream.
TEST(ReplayerTest, AReplayRunsOnTheStreamOfForward) {
  for (const int side : {0, 1}) {
    Layers p;
    const CodeId id = p.segment();
    Slot y = p.op(id, "made", p.b.argument(id));
    for (int i = 0; i < 2; ++i) {
      y = p.op(id, "made too", y);
      if (i == side) p.b.add(id, Sync{0, 1});
      if (i == side) p.b.add(id, SetStream{1});
      p.b.result(id, p.layer(id, "saves y", y));
      if (i == side) p.b.add(id, SetStream{0});
      if (i == side) p.b.add(id, Sync{1, 0});
    }
    const auto heads = p.call(0, id, {p.begin()}, Recompute::kReplay);
    p.b.add(0, Backward{{heads[0], heads[1]}, {}, {}, false, false});
    const Ran ours = run(std::move(p));  // without a hazard
    EXPECT_EQ(ours.result.replays.replays, 1);
    EXPECT_TRUE(ours.result.errors.empty());
  }
}

TEST(ReplayerTest, SpansNest) {
  const auto program = [](Recompute recompute) {
    Layers p;
    const CodeId inner = p.segment_of({"a", "b"});
    const CodeId outer = p.segment();
    const Slot x = p.b.argument(outer);
    const Slot y = p.layer(outer, "before", x);
    p.b.result(outer, p.layer(outer, "after", p.call(outer, inner, {y}, recompute)[0]));
    p.backward(p.call(0, outer, {p.begin()}, recompute)[0]);
    return p;
  };
  const Ran ours = run(program(Recompute::kReplay));
  EXPECT_EQ(ours.result.replays.spans, 2);
  EXPECT_EQ(ours.result.gradients, run(program(Recompute::kNone)).result.gradients);
}

// What the span needs from outside goes with the rest of what the checkpoint saves.
TEST(ReplayerTest, InACheckpointItsInputsAreTheCheckpoints) {
  const auto alive = [](Recompute recompute) {
    Layers p;
    const CodeId inner = p.segment_of({"a", "b"});
    const CodeId outer = p.segment();
    const Slot y = p.layer(outer, "before", p.b.argument(outer));
    p.b.result(outer, p.layer(outer, "end", p.call(outer, inner, {y}, recompute)[0]));
    const Slot z = p.call(0, outer, {p.begin()}, Recompute::kCheckpoint)[0];
    p.op(0, "after", z);
    p.backward(z);
    const Ran ours = run(std::move(p));
    EXPECT_EQ(ours.result.checkpoints.recomputes, 1);
    EXPECT_TRUE(ours.result.errors.empty());
    return ours.census.alive_at.at("after");
  };
  EXPECT_EQ(alive(Recompute::kReplay), alive(Recompute::kNone));
}

// A recompute passes nothing on. So a span that made again what is passed on would need more of its
// calls in forward than in the outer checkpoint's recompute, and that one would find fewer tensors.
TEST(ReplayerTest, WhatACheckpointInASpanPassesOnIsNotTheSpans) {
  Layers p;
  const CodeId inner = p.segment_of({"a", "b"});
  const CodeId span = p.segment();
  const Slot y = p.op(span, "before", p.b.argument(span));
  p.b.result(span, p.call(span, inner, {y}, Recompute::kCheckpoint)[0]);
  const CodeId outer = p.segment();
  p.b.result(outer, p.call(outer, span, {p.b.argument(outer)}, Recompute::kReplay)[0]);
  p.backward(p.call(0, outer, {p.begin()}, Recompute::kCheckpoint)[0]);
  SegmentPlan passes_on;
  passes_on.choices = {SavedChoice::kOffload, SavedChoice::kOffload};
  SegmentPlan around;
  around.segments = {passes_on};
  auto plan = std::make_shared<SegmentPlan>();
  plan->segments = {around};
  const Ran ours = run(std::move(p), {}, plan);
  EXPECT_TRUE(ours.result.errors.empty());
  EXPECT_EQ(ours.result.checkpoints.kept, 2) << "no hooks are around all of them";
}

}  // namespace
}  // namespace ferry::test
