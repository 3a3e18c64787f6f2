// What a replayer counts, one number after another.
#include <gtest/gtest.h>

#include "shared/replay/replayer.h"
#include "tests/shared/replay/span_rig.h"

namespace ferry::test {
namespace {

class CountsTest : public SpanTest {};

TEST_F(CountsTest, ANewReplayerHasCountedNothing) {
  EXPECT_EQ(counts().spans, 0);
  EXPECT_EQ(counts().alive, 0);
  EXPECT_EQ(counts().calls, 0);
  EXPECT_EQ(counts().calls_left, 0);
  EXPECT_EQ(counts().saved, 0);
  EXPECT_EQ(counts().passed_on, 0);
  EXPECT_EQ(counts().held, 0);
  EXPECT_EQ(counts().replays, 0);
  EXPECT_EQ(counts().calls_replayed, 0);
  EXPECT_TRUE(replayer.empty());
}

TEST_F(CountsTest, ASpanIsAliveWhileASavedTensorOfItIs) {
  Span span = replayer.begin();
  Save saved = save(span, call(span));
  span->end();
  span.reset();
  EXPECT_EQ(counts().alive, 1);
  EXPECT_FALSE(replayer.empty());
  saved.reset();
  EXPECT_EQ(counts().alive, 0);
  EXPECT_EQ(counts().spans, 1);
  EXPECT_TRUE(replayer.empty());
}

TEST_F(CountsTest, CallsAreThoseThatWereRecorded) {
  const Span span = replayer.begin();
  const Tensor y = call(span);
  EXPECT_EQ(counts().calls, 1);
  Seen once = seen({{y}}, {make()});
  once.run = nullptr;
  span->ran(once);
  EXPECT_EQ(counts().calls, 1) << "it cannot run again";
  span->ran(seen({{y}}, {view(y)}));
  EXPECT_EQ(counts().calls, 1) << "a view is none";
  call(span, {{y}});
  EXPECT_EQ(counts().calls, 2);
  span->end();
}

TEST_F(CountsTest, CallsLeftAreThoseThatSavedTensorsNeedAtTheEnd) {
  const Span span = replayer.begin();
  const Tensor y = call(span);
  Save first = save(span, y);
  const Save dropped = save(span, call(span, {{y}}));
  call(span, {{y}});
  Save gone = save(span, call(span, {{y}}));
  gone.reset();
  span->end();
  EXPECT_EQ(counts().calls, 4);
  EXPECT_EQ(counts().calls_left, 2);
}

TEST_F(CountsTest, ATensorThatTheSpanMadeIsSavedAndAnyOtherIsPassedOn) {
  const Span span = replayer.begin();
  const Tensor x = make();
  const Tensor y = call(span, {{x}});
  const Save of_x = save(span, x);
  EXPECT_EQ(counts().passed_on, 1);
  EXPECT_EQ(counts().saved, 0);
  const Save of_y = save(span, y);
  const Save again = save(span, y);
  EXPECT_EQ(counts().passed_on, 1);
  EXPECT_EQ(counts().saved, 2);
  span->end();
}

TEST_F(CountsTest, HeldAreTheArgumentsFromOutsideThatSavedTensorsNeed) {
  const Span span = replayer.begin();
  const Save saved = save(span, call(span, {{make()}, {make()}}));
  call(span, {{make()}});
  span->end();
  EXPECT_EQ(counts().held, 2);
}

TEST_F(CountsTest, EachReplayAndEachCallOfItCounts) {
  const Span span = replayer.begin();
  const Tensor y = call(span);
  const Save first = save(span, y);
  const Save second = save(span, call(span, {{y}}));
  span->end();
  for (int i = 1; i <= 2; ++i) {
    backward([&] {
      second->unpack();
      first->unpack();
    });
    EXPECT_EQ(counts().replays, i);
    EXPECT_EQ(counts().calls_replayed, 2 * i);
  }
}

}  // namespace
}  // namespace ferry::test
