// What a recompute makes on one stream, and a node of another reads: its block must not be given
// out while that reads it. Random programs do not show it, for what they save on another stream is
// recorded as in use by the program itself, also where it is recomputed.
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "tests/shared/checkpoint/ran.h"

namespace ferry::sim {
namespace {

using test::expect_right;
using test::Layers;
using test::Ran;

// Nodes on stream 1 save what stream 0 computed. Main keeps that until the streams have met; what a
// recompute makes in its stead is the core's, and goes while the node reads it. The next recompute
// begins on stream 0, and takes its block.
Program saved_on_another_stream() {
  Layers program;
  Builder& b = program.b;
  const CodeId id = program.segment();
  const Slot x = b.argument(id);
  const CodeId body = b.code(CodeKind::kBody, "SideBackward");
  const Slot gradient = b.argument(body);
  b.result(body, b.op(body, "side_grad", {gradient, b.saved(body)}, program.big));
  b.add(id, Free{{program.op(id, "reuse", x)}});
  b.add(id, Sync{0, 1});
  b.add(id, SetStream{1});
  const Slot y = b.slot(id);
  b.add(id, MakeNode{"SideBackward", 0, {x}, {y}, {}, body});
  b.add(id, Op{"side", {x}, {y}, {program.big}, {}, 0, 0, 0, 0});
  b.add(id, SetStream{0});
  b.add(id, RecordUse{y, 0});
  b.add(id, Sync{1, 0});
  const Slot late = program.op(id, "late", y);
  b.add(id, Save{0, {late}});
  b.result(id, y);
  b.result(id, late);
  const Slot begun = program.begin();
  const std::vector<Slot> first = program.call(0, id, {begun});
  const std::vector<Slot> second = program.call(0, id, {first[0]});
  program.backward(second[0]);
  b.add(0, Sync{1, 0});
  b.add(0, Free{{first[1], second[1]}});
  return program.take();
}

Ran run_with(std::optional<Mutation> mutation) {
  SimulationOptions options;
  options.mutation = mutation;
  return test::run(saved_on_another_stream(), options);
}

TEST(CheckpointTest, WhatANodeOfAnotherStreamGetsIsInUseThere) {
  expect_right(saved_on_another_stream(), run_with(std::nullopt));
  for (const Bend bend : {Bend::kDrop, Bend::kOtherStream}) {
    EXPECT_FALSE(run_with(Mutation{Step::kRecomputedInUse, bend}).result.hazards.empty());
  }
}

}  // namespace
}  // namespace ferry::sim
