// A recompute that does not save what forward saved is an error in PyTorch's words, and the next
// step works.
#include "shared/checkpoint/errors.h"

#include <gtest/gtest.h>

#include "tests/shared/checkpoint/ran.h"

namespace ferry::sim {
namespace {

using test::expect_counts;
using test::expect_error;
using test::Layers;
using test::Ran;
using test::run;

// A segment which has `extra` layers that nobody uses, only where it runs again or only where it
// does not; then a step without any.
Program unequal(bool recomputing, bool early_stop) {
  Layers p;
  const CodeId id = p.segment();
  const Slot x = p.b.argument(id);
  p.b.add(id, When{recomputing, 2});
  p.layer(id, "extra", x);
  p.b.result(id, p.layer(id, "layer", x));
  Call call{id, {p.begin()}, {}};
  call.recompute = Recompute::kCheckpoint;
  call.early_stop = early_stop;
  p.backward(p.call_with(0, call)[0]);
  p.backward(p.call(0, p.segment_of({"layer"}), {p.begin()})[0]);
  return p.take();
}

TEST(CheckpointTest, FewerSavesAreAnErrorAndTheNextStepWorks) {
  const Ran ran = run(unequal(false, true));
  expect_error(ran, checkpoint_text::fewer(2, 1));
  expect_counts(ran, {{"layer", 3}});  // in forwards; and to the end, in search of the second save
}

TEST(CheckpointTest, MoreSavesAreAnErrorWhereNothingStopsEarly) {
  expect_error(run(unequal(true, false)), checkpoint_text::more());
}

TEST(CheckpointTest, OtherShapesAreAnErrorUnlessUnchecked) {
  for (const bool check : {true, false}) {
    Layers p;
    const CodeId id = p.segment();
    const Slot x = p.b.argument(id);
    const Slot between = p.b.slot(id);
    const TypeId half = p.b.type({test::kActivationBytes / 4});
    p.b.add(id, When{false, 1});
    p.b.add(id, Op{"between", {x}, {between}, {p.big}, {}, 0, 0, 0, 0});
    p.b.add(id, When{true, 1});
    p.b.add(id, Op{"between", {x}, {between}, {half}, {}, 0, 0, 0, 0});
    p.b.result(id, p.layer(id, "layer", between));
    Call call{id, {p.begin()}, {}};
    call.recompute = Recompute::kCheckpoint;
    call.determinism_check = check;
    p.backward(p.call_with(0, call)[0]);
    p.backward(p.call(0, p.segment_of({"layer"}), {p.begin()})[0]);
    const Ran ran = run(p.take());
    if (check) {
      expect_error(ran, checkpoint_text::different(
                            {{0, "shape [32768], dtype bf16", "shape [16384], dtype bf16"}}));
    } else {
      EXPECT_TRUE(ran.result.errors.empty());
      EXPECT_FALSE(ran.result.hazards.empty());  // the values are others, too
    }
  }
}

// The last layer saves on another stream, so an early stop has a stream to join.
TEST(CheckpointTest, AnEarlyStopThatCannotJoinItsStreamsIsAnError) {
  for (const Step step : {Step::kRecomputed, Step::kUnpackRecomputed}) {
    Layers p;
    const CodeId id = p.segment();
    const Slot x = p.op(id, "own", p.b.argument(id));
    p.b.add(id, Sync{0, 1});
    p.b.add(id, SetStream{1});
    const Slot y = p.layer(id, "side", x);
    p.b.add(id, SetStream{0});
    p.b.add(id, RecordUse{x, 1});
    p.b.add(id, RecordUse{y, 0});
    p.b.add(id, Sync{1, 0});
    p.b.result(id, y);
    for (int i = 0; i < 2; ++i) {
      p.backward(p.call(0, id, {p.begin()})[0]);
      p.b.add(0, Sync{1, 0});
    }
    sim::SimulationOptions options;
    options.fault = std::make_shared<FaultPoint>(step, 0);
    expect_error(run(p.take(), options), "injected fault");
  }
}

TEST(CheckpointTest, ASavedTensorThatTheFunctionWritesLaterIsAnError) {
  for (const bool recompute : {false, true}) {
    Layers p;
    const CodeId id = p.segment();
    const Slot x = p.op(id, "own", p.b.argument(id));
    const Slot y = p.layer(id, "layer", x);
    p.b.write(id, "late_", x);
    p.b.result(id, p.layer(id, "last", y));
    p.backward(
        p.call(0, id, {p.begin()}, recompute ? Recompute::kCheckpoint : Recompute::kNone)[0]);
    expect_error(run(p.take()), "one of the variables needed for gradient computation");
  }
}

}  // namespace
}  // namespace ferry::sim
