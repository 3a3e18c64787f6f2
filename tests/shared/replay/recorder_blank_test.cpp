// Storages whose contents are undefined when they are made: a span knows them once a call has
// overwritten the whole, and loses them to any other use before.
#include <gtest/gtest.h>

#include <utility>

#include "shared/replay/recorder.h"
#include "tests/shared/replay/span_rig.h"

namespace ferry::test {
namespace {

class BlankTest : public ReplayTest {
 protected:
  ~BlankTest() override {
    recording = {};
    expect_clean();
  }
  bool ran(Seen call) { return recorder.ran(recording, call); }
  bool is_made(const Tensor& tensor) { return recorder.find(tensor).has_value(); }
  Tensor blank() {
    const Tensor tensor = make();
    Seen call = seen({}, {tensor});
    call.makes_blank = true;
    EXPECT_TRUE(ran(std::move(call)));
    return tensor;
  }
  // A call that writes all of what it writes.
  bool overwritten(Arguments arguments) {
    Seen call = seen(std::move(arguments), {});
    call.overwrites = true;
    return ran(std::move(call));
  }
  void expect_lost(const Tensor& tensor) {
    EXPECT_FALSE(is_made(tensor));
    EXPECT_FALSE(overwritten({{tensor, true}})) << "a write of what is from outside";
    EXPECT_FALSE(is_made(tensor));
  }

  SpanRecorder<SpanDevice> recorder{device()};
  ReplayRecording<SpanDevice> recording;
};

TEST_F(BlankTest, ItIsMadeOnceACallHasOverwrittenAllOfIt) {
  const Tensor y = blank();
  EXPECT_FALSE(is_made(y));
  EXPECT_TRUE(overwritten({{y, true}, {make()}}));
  ASSERT_TRUE(is_made(y));
  EXPECT_EQ(recorder.find(y)->storage, 0u);
  EXPECT_EQ(recording.position(), 2u);
  EXPECT_TRUE(ran(seen({{y}}, {make()}))) << "from now on it may be read";
}

TEST_F(BlankTest, AWriteThatMayReadItLosesIt) {
  const Tensor y = blank();
  EXPECT_FALSE(ran(seen({{y, true}}, {})));
  expect_lost(y);
}

TEST_F(BlankTest, AnOverwriteOfAPartLosesIt) {
  const Tensor y = blank();
  EXPECT_FALSE(overwritten({{world.view(y, contiguous_layout(DType::kU8, {kBytes / 2})), true}}));
  expect_lost(y);
}

TEST_F(BlankTest, AnOverwriteThatLeavesHolesLosesIt) {
  const Tensor y = world.make(kBytes - 1);
  Seen call = seen({}, {y});
  call.makes_blank = true;
  EXPECT_TRUE(ran(std::move(call)));
  const Layout every_second{DType::kU8, {kBytes / 2}, {2}, 0};  // the first and the last among them
  EXPECT_FALSE(overwritten({{world.view(y, every_second), true}}));
  expect_lost(y);
}

TEST_F(BlankTest, ACallThatReadsItWhileItOverwritesAnotherLosesBoth) {
  const Tensor read = blank();
  const Tensor written = blank();
  EXPECT_FALSE(overwritten({{written, true}, {read}}));
  expect_lost(read);
  expect_lost(written);
}

TEST_F(BlankTest, ACallThatCannotRunAgainAndReadsItLosesIt) {
  const Tensor y = blank();
  Seen call = seen({{y}}, {make()});
  call.run = nullptr;
  EXPECT_FALSE(ran(std::move(call)));
  expect_lost(y);
}

TEST_F(BlankTest, WhatIsNotBlankMayBeWrittenInPart) {
  const Tensor y = make();
  ASSERT_TRUE(ran(seen({}, {y})));
  EXPECT_TRUE(ran(seen({{y, true}}, {})));
  EXPECT_TRUE(overwritten({{world.view(y, contiguous_layout(DType::kU8, {kBytes / 2})), true}}));
  EXPECT_TRUE(is_made(y));
  EXPECT_EQ(recording.position(), 3u);
}

}  // namespace
}  // namespace ferry::test
