// The end of a span: what it lets go, what the hooks around it see, and that nothing that comes
// later is its own.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "shared/replay/replayer.h"
#include "tests/shared/replay/span_rig.h"

namespace ferry::test {
namespace {

class SpanEndTest : public SpanTest {
 protected:
  using Storages = std::vector<std::uint64_t>;
  // A span under hooks that note what they see.
  Span begin_within(const std::shared_ptr<Around>& around) {
    const HooksGuard<FrameAutograd> guard(autograd(), around);
    return replayer.begin();
  }
  static std::uint64_t storage(const Tensor& tensor) { return tensor->storage->identity; }
};

TEST_F(SpanEndTest, WhatRunsAfterwardsIsNotRecorded) {
  const Span span = replayer.begin();
  const Save saved = save(span, call(span));
  span->end();
  const Tensor late = call(span);
  EXPECT_EQ(counts().calls, 1);
  const Save kept = save(span, late);
  EXPECT_EQ(counts().passed_on, 1);
  EXPECT_EQ(kept->unpack()->storage, late->storage);
  EXPECT_EQ(counts().replays, 0);
}

TEST_F(SpanEndTest, WhatItMadeIsFromOutsideWhereItIsSavedAfterwards) {
  const Span span = replayer.begin();
  const Tensor y = call(span);
  span->end();
  const Save kept = save(span, y);
  EXPECT_EQ(counts().saved, 0);
  EXPECT_EQ(counts().passed_on, 1);
  EXPECT_EQ(kept->unpack()->storage, y->storage);
  EXPECT_EQ(notes->weak_references(), 0);
}

TEST_F(SpanEndTest, CallsThatNoSavedTensorNeedsGoWithWhatTheyHeld) {
  const Span span = replayer.begin();
  const auto token = std::make_shared<int>();
  Seen needless = seen({{make()}}, {make()});
  needless.run = [token](const Tensors&) { return Tensors{}; };
  span->ran(std::exchange(needless, {}));
  const Save saved = save(span, call(span));
  EXPECT_EQ(token.use_count(), 2);
  EXPECT_EQ(live(), 1) << "the argument; what the calls made is gone";
  span->end();
  EXPECT_EQ(token.use_count(), 1);
  EXPECT_EQ(live(), 0);
}

TEST_F(SpanEndTest, SoDoThoseThatOnlyADroppedTensorNeeded) {
  const Span span = replayer.begin();
  Save dropped = save(span, call(span, {{make()}}));
  dropped.reset();
  EXPECT_EQ(live(), 1);
  span->end();
  EXPECT_EQ(live(), 0);
  EXPECT_EQ(counts().calls_left, 0);
}

TEST_F(SpanEndTest, HooksAroundSeeTheArgumentsThatSavedTensorsNeed) {
  const auto around = std::make_shared<Around>();
  const Span span = begin_within(around);
  const Tensor x = make();
  const Save saved = save(span, call(span, {{x}}));
  call(span, {{make()}});
  EXPECT_EQ(around->seen, Storages{});
  span->end();
  EXPECT_EQ(around->seen, Storages{storage(x)});
  EXPECT_EQ(counts().held, 1);
}

// A checkpoint around the span sees as many in its recompute, where autograd drops others.
TEST_F(SpanEndTest, HooksAroundSeeWhatADroppedTensorNeededAsWell) {
  const auto around = std::make_shared<Around>();
  const Span span = begin_within(around);
  const Tensor x = make();
  Save dropped = save(span, call(span, {{x}}));
  dropped.reset();
  span->end();
  EXPECT_EQ(around->seen, Storages{storage(x)});
  EXPECT_EQ(counts().held, 1);
}

TEST_F(SpanEndTest, AnArgumentThatMayNotMoveIsNotShownToThem) {
  const auto around = std::make_shared<Around>();
  const Span span = begin_within(around);
  const Save saved = save(span, call(span, {{make(), false, false}}));
  span->end();
  EXPECT_EQ(around->seen, Storages{});
  EXPECT_EQ(live(), 1) << "it is held where it is";
}

// The refusal comes with the unpacking that needs the argument, for maybe none does.
TEST_F(SpanEndTest, AnArgumentThatWasWrittenMeanwhileIsRefusedWhenItIsNeeded) {
  const Span span = replayer.begin();
  const Tensor x = make();
  const Save saved = save(span, call(span, {{x}}));
  world.write(x);
  EXPECT_EQ(error_of([&] { span->end(); }), "");
  backward([&] { EXPECT_EQ(error_of([&] { saved->unpack(); }), kWritten); });
}

TEST_F(SpanEndTest, WithoutItsRuleTheEndRefusesIt) {
  Spans early(device(), autograd(), Rules::without(Rule::kRefuseLate));
  const Span span = early.begin();
  const Tensor x = make();
  const Save saved = save(span, call(span, {{x}}));
  world.write(x);
  EXPECT_EQ(error_of([&] { span->end(); }), kWritten);
}

// Else the context's group of backwards would live as long as the span, with all its results.
TEST_F(SpanEndTest, ASpanHoldsNoCheckpointContextWhileItLives) {
  HookStack<Tensor> stack = autograd().hooks();
  stack.checkpoint = std::make_shared<const CheckpointContext>();
  const std::weak_ptr<const CheckpointContext> context = stack.checkpoint;
  const Span span = replayer.begin(std::move(stack));
  EXPECT_TRUE(context.expired());
  span->end();
}

}  // namespace
}  // namespace ferry::test
