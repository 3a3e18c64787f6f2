// An offloader around checkpoints sees their inputs, and what is passed on from inside.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

#include "tests/shared/checkpoint/ran.h"

namespace ferry::sim {
namespace {

using test::expect_counts;
using test::expect_right;
using test::Layers;
using test::Ran;
using test::run;

TEST(CheckpointTest, OffloadedInputsComeBackBeforeTheRecompute) {
  Layers p;
  const CodeId id = p.segment_of({"a", "b"});
  Slot x = p.begin();
  for (int i = 0; i < 6; ++i) {
    const Slot y = p.call(0, id, {x})[0];
    p.b.add(0, Free{{x}});
    x = y;
  }
  p.backward(x);
  const Program program = p.take();
  SimulationOptions options;
  options.offload.emplace();
  options.offload->min_bytes = 0;
  options.offload->window_tensors = 1;
  const Ran ran = run(program, options);
  expect_right(program, ran);
  // Of the six inputs, but for what the window kept; nothing of the inside.
  EXPECT_GE(ran.result.statistics.reloaded_count, 4);
  EXPECT_LE(ran.result.statistics.offloaded_count, 7);
  expect_counts(ran, {{"a", 12}, {"b", 6}});
}

// Hooks never see it, and a recompute finds it where it was.
TEST(CheckpointTest, WhatAFunctionCapturesIsNotSaved) {
  for (const std::uint32_t captured : {0u, 1u}) {
    Layers p;
    Call call{p.segment_of({"a", "b"}), {p.begin()}, {}};
    call.recompute = Recompute::kCheckpoint;
    call.captured = captured;
    p.backward(p.call_with(0, call)[0]);
    p.b.add(0, Free{{call.in[0]}});
    const Program program = p.take();
    SimulationOptions options;
    options.offload.emplace();
    options.offload->min_bytes = 0;
    const Ran ran = run(program, options);
    expect_right(program, ran);
    EXPECT_EQ(ran.result.statistics.offloaded_count, 2 - captured);  // and what "begin" saves
    expect_counts(ran, {{"a", 2}, {"b", 1}});
  }
}

TEST(CheckpointTest, WhatIsChosenIsKeptOrPassedOn) {
  Layers p;
  const CodeId four = p.segment_of({"a", "b", "c", "d"});
  const CodeId forward = p.segment();
  const Slot x = p.call(forward, four, {p.b.argument(forward)})[0];
  p.b.result(forward, p.call(forward, four, {x})[0]);
  p.backward(p.call(0, forward, {p.begin()}, Recompute::kNone)[0]);
  const Program program = p.take();
  SegmentPlan segment;
  segment.choices = {SavedChoice::kKeep, SavedChoice::kOffload, SavedChoice::kRecompute};
  auto plan = std::make_shared<SegmentPlan>();
  plan->segments = {segment, SegmentPlan{}};
  plan->segments[1].checkpoint = false;
  SimulationOptions options;
  options.segments = plan;
  options.offload.emplace();
  options.offload->min_bytes = 0;
  const Ran ran = run(program, options);
  expect_right(program, ran);
  EXPECT_EQ(ran.result.checkpoints.kept, 1);
  EXPECT_EQ(ran.result.checkpoints.passed_on, 1);
  EXPECT_EQ(ran.result.checkpoints.saved, 2);
  // The first call stops at d's input; the second one is none.
  expect_counts(ran, {{"a", 3}, {"b", 3}, {"c", 3}, {"d", 2}});
}

}  // namespace
}  // namespace ferry::sim
