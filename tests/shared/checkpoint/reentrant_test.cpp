#include "shared/checkpoint/reentrant.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "shared/checkpoint/errors.h"
#include "tests/shared/checkpoint/ran.h"
#include "tests/shared/checkpoint/told.h"
#include "tests/sim/support/without_segments.h"

namespace ferry::sim {
namespace {

using test::expect_counts;
using test::expect_error;
using test::expect_right;
using test::Layers;
using test::Ran;
using test::run;
using test::ToldRig;
using test::Values;
using test::without_segments;

// R1 { a, R2 { b }, c }: all of R1 runs again, R2 in it as in forward, and then R2 for itself.
TEST(CheckpointTest, ReentrantSegmentsRunWhollyAgain) {
  Layers p(4);
  const CodeId r2 = p.segment();
  p.b.result(r2, p.layer(r2, "b", p.b.argument(r2), 1));
  const CodeId r1 = p.segment();
  const Slot x = p.layer(r1, "a", p.b.argument(r1), 2);
  p.b.result(r1, p.layer(r1, "c", p.call(r1, r2, {x}, Recompute::kReentrant)[0], 3));
  p.backward(p.call(0, r1, {p.layer(0, "begin", p.input, 0)}, Recompute::kReentrant)[0]);
  const Program program = p.take();
  const Ran ran = run(program);
  expect_right(program, ran);
  expect_counts(ran, {{"begin", 1}, {"a", 2}, {"b", 3}, {"c", 2}});
}

TEST(CheckpointTest, AReentrantSegmentGoesBackwardFromAllItsOutputs) {
  Layers p(3);
  const CodeId id = p.segment();
  const Slot x = p.b.argument(id);
  p.b.result(id, p.layer(id, "first", x, 1));
  p.b.result(id, p.layer(id, "second", x, 2));
  p.b.add(0, Backward{p.call(0, id, {p.begin()}, Recompute::kReentrant), {}, {}, false, false});
  const Program program = p.take();
  const Ran ran = run(program);
  expect_right(program, ran);
  expect_counts(ran, {{"first", 2}, {"second", 2}});
  EXPECT_NE(ran.result.gradients[p.w[2]], 0u);
}

TEST(CheckpointTest, AReentrantSegmentRefusesBackwardsThatDoNotAccumulate) {
  Layers p;
  const CodeId id = p.segment_of({"a"});
  const Slot y = p.call(0, id, {p.begin()}, Recompute::kReentrant)[0];
  p.b.add(0, Backward{{y}, {p.w[0]}, {p.b.slot(0)}, true, false});
  p.backward(y);
  const Ran ran = run(p.take());
  expect_error(ran, checkpoint_text::kReentrantInvalid);
  expect_counts(ran, {{"a", 2}});
}

TEST(CheckpointTest, AReentrantSegmentWithoutAGraphIsAnError) {
  Layers p;
  const CodeId id = p.segment();
  p.b.result(id, p.op(id, "nothing", p.b.argument(id)));
  p.backward(p.call(0, id, {p.begin()}, Recompute::kReentrant)[0]);
  expect_error(run(p.take()), checkpoint_text::kNothingRequiresGrad);
}

TEST(CheckpointTest, WithoutAnInputThatRequiresGradAReentrantSegmentHasNoGraph) {
  Layers p;
  const CodeId id = p.segment_of({"a"});
  p.backward(p.call(0, id, {p.input}, Recompute::kReentrant)[0]);
  const Ran ran = run(p.take());
  EXPECT_TRUE(ran.result.errors.empty());
  expect_counts(ran, {{"a", 1}, {"grad", 0}});
  EXPECT_EQ(ran.result.gradients[p.w[0]], 0u);
}

Program dropping(bool preserve_rng) {
  Layers p;
  const CodeId id = p.segment();
  p.b.result(id, p.layer(id, "last", p.dropout(id, p.b.argument(id))));
  Call call{id, {p.begin()}, {}};
  call.recompute = Recompute::kReentrant;
  call.preserve_rng = preserve_rng;
  p.backward(p.call_with(0, call)[0]);
  return p.take();
}

TEST(CheckpointTest, AReentrantSegmentSeesForwardsRandomNumbersAgain) {
  const Program program = dropping(true);
  const Ran ran = run(program);
  expect_right(program, ran);
  expect_counts(ran, {{"draw", 2}});
}

TEST(CheckpointTest, WithoutItsRandomStateAReentrantSegmentSeesOthers) {
  const Program program = dropping(false);
  const Ran plain = run(without_segments(program));
  EXPECT_NE(run(program).result.gradients, plain.result.gradients);
}

TEST(CheckpointTest, AReentrantSegmentReturnsAsManyTensorsAgain) {
  for (const auto& [first, again] : {std::pair{1, 2}, {2, 1}}) {
    ToldRig rig;
    int outputs = first;
    const Values out = rig.call(/*reentrant=*/true, {rig.rig.leaf()}, [&](const Values& in) {
      const Values made{rig.layer("one", in[0]), rig.layer("two", in[0])};
      return Values(made.begin(), made.begin() + outputs);
    });
    outputs = again;
    EXPECT_EQ(test::error_of([&] { rig.rig.backward({out[0]}); }),
              "ferry::checkpoint: the function returned " + std::to_string(first) +
                  " tensors in the original forward, and " + std::to_string(again) +
                  " in recomputation.");
  }
}

}  // namespace
}  // namespace ferry::sim
