// Checkpoints on the tape, rule by rule. Counts are worked out by hand from the rules of nesting
// (shared/checkpoint/checkpointer.h).
#include <gtest/gtest.h>

#include "tests/shared/checkpoint/ran.h"
#include "tests/sim/support/without_segments.h"

namespace ferry::sim {
namespace {

using test::expect_counts;
using test::expect_right;
using test::Layers;
using test::Ran;
using test::run;
using test::without_segments;

// S1 { a, S2 { b, S3 { c, d }, e }, f }
Program nested(bool early_stop) {
  Layers p;
  const auto call = [&p, early_stop](CodeId from, CodeId to, Slot x) {
    Call call{to, {x}, {}};
    call.recompute = Recompute::kCheckpoint;
    call.early_stop = early_stop;
    return p.call_with(from, call)[0];
  };
  const CodeId s3 = p.segment_of({"c", "d"});
  const auto around = [&](const char* before, CodeId inner, const char* after) {
    const CodeId id = p.segment();
    const Slot x = p.layer(id, before, p.b.argument(id));
    p.b.result(id, p.layer(id, after, call(id, inner, x)));
    return id;
  };
  const CodeId s2 = around("b", s3, "e");
  const CodeId s1 = around("a", s2, "f");
  p.backward(call(0, s1, p.begin()));
  return p.take();
}

// A recompute of S1 runs S2 and S3 as forward does, one of S2 runs S3 so; each of the three runs
// again once, and stops at the last input that a layer of its own saves, before that layer's op.
TEST(CheckpointTest, NestedSegmentsRunAsOftenAsTheRulesSay) {
  const Program program = nested(true);
  const Ran ran = run(program);
  expect_right(program, ran);
  expect_counts(ran, {{"begin", 1}, {"a", 2}, {"b", 3}, {"c", 4}, {"d", 3}, {"e", 2}, {"f", 1}});
  EXPECT_EQ(ran.result.checkpoints.recomputes, 3);
  EXPECT_EQ(ran.result.checkpoints.stopped_early, 3);
}

TEST(CheckpointTest, WithoutEarlyStopAllRuns) {
  const Program program = nested(false);
  const Ran ran = run(program);
  expect_right(program, ran);
  expect_counts(ran, {{"begin", 1}, {"a", 2}, {"b", 3}, {"c", 4}, {"d", 4}, {"e", 3}, {"f", 2}});
  EXPECT_EQ(ran.result.checkpoints.stopped_early, 0);
}

TEST(CheckpointTest, AnOpThatSavesItsOutputRunsBeforeTheStop) {
  Layers p;
  const CodeId id = p.segment();
  p.b.result(id, p.layer_saves_output(id, "last", p.layer(id, "first", p.b.argument(id))));
  p.backward(p.call(0, id, {p.begin()})[0]);
  const Program program = p.take();
  const Ran ran = run(program);
  expect_right(program, ran);
  expect_counts(ran, {{"first", 2}, {"last", 2}});
}

TEST(CheckpointTest, ASegmentThatSavesNothingIsNotRunAgain) {
  Layers p;
  const CodeId id = p.segment();
  const Slot x = p.b.argument(id);
  p.b.result(id, p.op(id, "nothing", x));
  const Slot begun = p.begin();
  p.call(0, id, {begun});
  p.backward(begun);
  const Program program = p.take();
  const Ran ran = run(program);
  expect_right(program, ran);
  expect_counts(ran, {{"nothing", 1}});
  EXPECT_EQ(ran.result.checkpoints.recomputes, 0);
}

Program dropping(bool preserve_rng) {
  Layers p;
  const CodeId id = p.segment();
  p.b.result(id, p.layer(id, "last", p.dropout(id, p.b.argument(id))));
  Call call{id, {p.begin()}, {}};
  call.recompute = Recompute::kCheckpoint;
  call.preserve_rng = preserve_rng;
  Slot y = p.call_with(0, call)[0];
  call.in = {y};
  call.out.clear();
  y = p.call_with(0, call)[0];
  p.backward(y);
  return p.take();
}

TEST(CheckpointTest, DropoutIsReplayed) {
  const Program program = dropping(true);
  const Ran ran = run(program);
  expect_right(program, ran);
  expect_counts(ran, {{"draw", 4}});
}

TEST(CheckpointTest, WithoutItsRandomStateDropoutDiffers) {
  const Ran ran = run(dropping(false));
  ASSERT_FALSE(ran.result.hazards.empty());
  for (const check::Hazard& hazard : ran.result.hazards)
    EXPECT_EQ(hazard.kind, check::HazardKind::kValue);
}

TEST(CheckpointTest, AmbientStateIsReplayedAndPutBack) {
  Layers p;
  const CodeId id = p.segment();
  const Slot x = p.layer(id, "before", p.b.argument(id));
  p.b.add(id, Ambient{2});
  p.b.result(id, p.layer(id, "after", p.layer(id, "between", x)));
  const Slot begun = p.begin();
  p.b.add(0, Ambient{1});
  const Slot y = p.call(0, id, {begun})[0];
  p.b.add(0, Ambient{3});
  p.backward(y);
  p.backward(p.call(0, id, {p.begin()})[0]);
  const Program program = p.take();
  expect_right(program, run(program));
}

TEST(CheckpointTest, EachBackwardRecomputesForItself) {
  Layers p;
  const CodeId id = p.segment_of({"a", "b"});
  const Slot y = p.call(0, id, {p.begin()})[0];
  p.backward(y, true);
  p.backward(y, true);
  p.backward(y);
  const Program program = p.take();
  const Ran ran = run(program);
  expect_right(program, ran);
  expect_counts(ran, {{"a", 4}, {"b", 1}});
}

TEST(CheckpointTest, MicrobatchesRecomputeInAnyOrder) {
  for (const bool last_first : {false, true}) {
    Layers p;
    const CodeId id = p.segment_of({"a", "b"});
    const Slot first = p.call(0, id, {p.begin()})[0];
    const Slot second = p.call(0, id, {p.begin()})[0];
    p.backward(last_first ? second : first);
    p.backward(last_first ? first : second);
    const Program program = p.take();
    const Ran ran = run(program);
    expect_right(program, ran);
    expect_counts(ran, {{"a", 4}, {"b", 2}});
  }
}

// Forward: a; to differentiate it, a's input is recomputed: everything that is known is there
// before a runs. Then b. Backward: a runs again, is differentiated again, and b is where it stops.
// Without early stop both recomputes run all of it; the first one is in forward, and b's save is
// one more than forward has made by then.
TEST(CheckpointTest, BackwardInsideASegment) {
  for (const bool early_stop : {true, false}) {
    for (const bool retain : {true, false}) {
      Layers p(3);
      const CodeId id = p.segment();
      const Slot x = p.layer(id, "a", p.b.argument(id), 1);
      // Without retain_graph, of a branch of its own.
      const Slot of = retain ? x : p.layer(id, "branch", x, 2);
      const Slot g = p.b.slot(id);
      p.b.add(id, Backward{{of}, {p.w[retain ? 1 : 2]}, {g}, retain, false});
      p.b.result(id, p.layer(id, "b", x));
      Call call{id, {p.begin()}, {}};
      call.recompute = Recompute::kCheckpoint;
      call.early_stop = early_stop;
      p.backward(p.call_with(0, call)[0]);
      const Program program = p.take();
      const Ran ran = run(program);
      expect_right(program, ran);
      if (!early_stop) {
        expect_counts(ran, {{"a", 3}, {"b", 3}});
      } else if (retain) {
        expect_counts(ran, {{"a", 2}, {"b", 1}});
      } else {
        // (The recompute in forward runs a, and stops at the branch's input.)
        expect_counts(ran, {{"a", 3}, {"branch", 2}, {"b", 1}});
      }
    }
  }
}

// Half of the segment computes on stream 1, and what it saves there is needed there.
TEST(CheckpointTest, ASegmentOnTwoStreams) {
  for (const bool offload : {false, true}) {
    Layers p;
    const CodeId id = p.segment();
    const Slot x = p.layer(id, "a", p.b.argument(id));
    p.b.add(id, Sync{0, 1});
    p.b.add(id, RecordUse{x, 1});
    p.b.add(id, SetStream{1});
    const Slot y = p.layer(id, "c", p.layer(id, "b", x));
    p.b.add(id, SetStream{0});
    p.b.add(id, RecordUse{y, 0});
    p.b.add(id, Sync{1, 0});
    p.b.result(id, p.layer(id, "d", y));
    Slot z = p.begin();
    for (int i = 0; i < 3; ++i) z = p.call(0, id, {z})[0];
    p.backward(z);
    const Program program = p.take();
    SimulationOptions options;
    if (offload) options.offload.emplace();
    const Ran ran = run(program, options);
    expect_right(program, ran);
    expect_counts(ran, {{"a", 6}, {"b", 6}, {"c", 6}, {"d", 3}});
  }
}

// The function lets go of `own` after its streams have met again. A recompute stops before, on
// stream 1; the next one begins on stream 0, and takes the block. (No gradient comes to stream 0 in
// between: the nodes have no weights.)
TEST(CheckpointTest, WhereItStopsEarlyTheStreamsMeetAllTheSame) {
  Layers p;
  Builder& b = p.b;
  const CodeId id = p.segment();
  const Slot x = b.argument(id);
  const Slot own = p.op(id, "own", x);
  b.add(id, Sync{0, 1});
  b.add(id, SetStream{1});
  b.add(id, RecordUse{x, 1});
  const Slot side = p.op(id, "side", own);
  const CodeId body = b.code(CodeKind::kBody, "SideBackward");
  const Slot gradient = b.argument(body);
  b.result(body, b.op(body, "side_grad", {gradient, b.saved(body)}, p.big));
  const Slot z = b.slot(id);
  b.add(id, MakeNode{"SideBackward", b.node_id(), {x}, {z}, {x}, body});
  b.add(id, Op{"last", {x}, {z}, {p.big}, {}, 0, 0, 0, 0});
  b.add(id, SetStream{0});
  b.add(id, RecordUse{z, 0});
  b.add(id, Sync{1, 0});
  b.add(id, Free{{own, side}});
  b.result(id, z);
  Slot out = p.begin();
  for (int i = 0; i < 3; ++i) out = p.call(0, id, {out})[0];
  p.backward(out);
  const Program program = p.take();
  expect_right(program, run(program));
}

// The node of the last layer saves what the segment returns.
TEST(CheckpointTest, WhatForwardSavedMayBeWrittenWhereItIsRecomputed) {
  Layers p;
  const CodeId id = p.segment();
  p.b.result(id, p.layer_saves_output(id, "last", p.b.argument(id)));
  const Slot y = p.call(0, id, {p.begin()})[0];
  p.b.write(0, "late_", y);
  p.backward(y);
  const Program program = p.take();
  const Ran plain = run(without_segments(program));
  ASSERT_EQ(plain.result.errors.size(), 1u);
  const Ran ran = run(program);
  EXPECT_TRUE(ran.result.errors.empty());
  EXPECT_TRUE(ran.result.hazards.empty());
  EXPECT_FALSE(ran.result.leftovers.any());
  expect_counts(ran, {{"last", 2}, {"grad", 4}});
}

Program long_chain(int segments, bool goes_backward) {
  Layers p;
  const CodeId id = p.segment_of({"a", "b", "c", "d"});
  Slot x = p.begin();
  for (int i = 0; i < segments; ++i) {
    const Slot y = p.call(0, id, {x})[0];
    p.b.add(0, Free{{x}});
    x = y;
  }
  if (goes_backward) p.backward(x);
  p.b.add(0, Free{{x}});
  return p.take();
}

TEST(CheckpointTest, AThousandSegmentsInARow) {
  for (const bool goes_backward : {true, false}) {
    const Program program = long_chain(1000, goes_backward);
    const Ran ran = run(program);
    expect_right(program, ran);
    expect_counts(ran, {{"a", goes_backward ? 2000 : 1000}, {"d", 1000}});
  }
}

// In each of 60 segments a layer, and then the next segment.
Program deep_nest(bool goes_backward) {
  Layers p;
  CodeId inner = p.segment_of({"a"});
  for (int depth = 1; depth < 60; ++depth) {
    const CodeId id = p.segment();
    p.b.result(id, p.call(id, inner, {p.layer(id, "a", p.b.argument(id))})[0]);
    inner = id;
  }
  const Slot x = p.call(0, inner, {p.begin()})[0];
  if (goes_backward) p.backward(x);
  return p.take();
}

// Each stops at the next one's input: so each layer but the last runs twice.
TEST(CheckpointTest, SixtySegmentsInEachOther) {
  for (const bool goes_backward : {true, false}) {
    const Program program = deep_nest(goes_backward);
    const Ran ran = run(program);
    expect_right(program, ran);
    expect_counts(ran, {{"a", goes_backward ? 60 + 59 : 60}});
  }
}

// At most an input for each segment, what one segment saves, and a few gradients.
TEST(CheckpointTest, PeakIsThatOfTheSegmentsInputsAndOneInside) {
  const Program program = long_chain(16, true);
  const Ran ran = run(program);
  const Ran plain = run(without_segments(program));
  EXPECT_GE(plain.census.peak, 64);
  EXPECT_LE(ran.census.peak, 16 + 4 + 6);
}

}  // namespace
}  // namespace ferry::sim
