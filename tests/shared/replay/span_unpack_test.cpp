// Who unpacks what a span saved: which tasks and threads share a replay, what one outside of a
// backward runs again, and when results go.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "shared/replay/replayer.h"
#include "tests/shared/replay/span_rig.h"

namespace ferry::test {
namespace {

class SpanUnpackTest : public SpanTest {
 protected:
  explicit SpanUnpackTest(const sim::MachineOptions& machine = {}) : SpanTest(machine) {}
  // Saves of a span that has ended: what so many calls of their own made.
  std::vector<Save> saved_by(int count) {
    const Span span = replayer.begin();
    std::vector<Save> saves;
    for (int i = 0; i < count; ++i) saves.push_back(save(span, call(span)));
    span->end();
    return saves;
  }
};

TEST_F(SpanUnpackTest, WhatTheSpanDidNotMakeIsKeptWhereNoHooksAreAround) {
  const Span span = replayer.begin();
  const Tensor x = make();
  const Save saved = save(span, x);
  ASSERT_NE(saved, nullptr) << "autograd has no tensor of its own";
  EXPECT_EQ(saved->unpack()->storage, x->storage);
  world.write(x);
  EXPECT_EQ(error_of([&] { saved->unpack(); }), kWritten);
  span->end();
}

TEST_F(SpanUnpackTest, ACallOnAnotherThreadIsNotRecorded) {
  const Span span = replayer.begin();
  thread.id = ThreadId{1};
  const Tensor other = call(span);
  thread.id = ThreadId{};
  const Save saved = save(span, other);
  span->end();
  EXPECT_EQ(counts().calls, 0);
  EXPECT_EQ(counts().passed_on, 1);
}

// A debugger's look at a graph: no task would end, so nothing is kept for the next one.
TEST_F(SpanUnpackTest, OutsideABackwardEachOneRunsAgainWhatItNeedsAlone) {
  const std::vector<Save> saves = saved_by(3);
  const Tensor first = saves[1]->unpack();
  EXPECT_EQ(counts().replays, 1);
  EXPECT_EQ(counts().calls_replayed, 1);
  EXPECT_EQ(live(), 1);
  const Tensor second = saves[1]->unpack();
  EXPECT_NE(first->storage, second->storage);
  EXPECT_EQ(counts().replays, 2);
  EXPECT_EQ(counts().calls_replayed, 2);
  EXPECT_EQ(thread.task_ends, 0);
}

TEST_F(SpanUnpackTest, ASecondUnpackInOneTaskRunsAgainWhatItNeedsAlone) {
  const std::vector<Save> saves = saved_by(3);
  backward([&] {
    const Tensor first = saves[0]->unpack();
    EXPECT_EQ(counts().calls_replayed, 3);
    EXPECT_NE(saves[0]->unpack()->storage, first->storage);
    EXPECT_EQ(counts().replays, 2);
    EXPECT_EQ(counts().calls_replayed, 4);
  });
}

TEST_F(SpanUnpackTest, ATaskWithinATaskReplaysForItself) {
  const std::vector<Save> saves = saved_by(2);
  backward([&] {
    saves[0]->unpack();
    backward([&] { saves[1]->unpack(); });
    EXPECT_EQ(counts().replays, 2);
    saves[1]->unpack();
    EXPECT_EQ(counts().replays, 2) << "the outer one's result waited for it";
  });
}

TEST_F(SpanUnpackTest, EachThreadOfATaskReplaysForItself) {
  const std::vector<Save> saves = saved_by(2);
  backward([&] {
    saves[0]->unpack();
    thread.id = ThreadId{1};
    saves[1]->unpack();
    EXPECT_EQ(counts().replays, 2);
    thread.id = ThreadId{};
    saves[1]->unpack();
    EXPECT_EQ(counts().replays, 2);
  });
}

TEST_F(SpanUnpackTest, AResultGoesWhenItsSavedTensorIsDropped) {
  std::vector<Save> saves = saved_by(3);
  backward([&] {
    saves[0]->unpack();
    EXPECT_EQ(live(), 2) << "for the other two";
    saves[1].reset();
    EXPECT_EQ(live(), 1);
    saves[2].reset();
    EXPECT_EQ(live(), 0);
  });
}

// A backward inside the span: what is saved after its first unpacking is not among the results.
TEST_F(SpanUnpackTest, WhatIsSavedSinceATasksReplayRunsAgainByItself) {
  constexpr std::size_t kMost = 64;
  for (std::size_t before = 1; before <= kMost; ++before) {
    const Span span = replayer.begin();
    const Tensor y = call(span);
    std::vector<Save> saves;
    for (std::size_t i = 0; i < before; ++i) saves.push_back(save(span, y));
    const std::int64_t replays = counts().replays;
    backward([&] {
      saves.front()->unpack();
      for (std::size_t i = 0; i < kMost; ++i) saves.push_back(save(span, y));
      EXPECT_EQ(counts().replays, replays + 1);
      for (std::size_t i = 0; i < kMost; ++i) {
        EXPECT_NE(saves[before + i]->unpack(), nullptr);
        EXPECT_EQ(counts().replays, replays + 2 + static_cast<std::int64_t>(i));
      }
    });
    span->end();
  }
}

class SpanOfTwoDevicesTest : public SpanUnpackTest {
 protected:
  SpanOfTwoDevicesTest() : SpanUnpackTest(two_devices()) {}
  static sim::MachineOptions two_devices() {
    sim::MachineOptions options;
    options.devices = 2;
    return options;
  }
  Tensor make_there() {
    const SpanDevice::StreamScope there(device(), world.machine().compute_stream(1, 0));
    return make();
  }
};

TEST_F(SpanOfTwoDevicesTest, AResultOfTheDeviceIsHandedToTheStreamThatUnpacksIt) {
  const std::vector<Save> saves = saved_by(1);
  backward([&] {
    const SpanDevice::StreamScope side(device(), world.stream(1));
    saves[0]->unpack();
  });
  EXPECT_EQ(*calls, (FrameDevice::Calls{{Step::kRecomputed, 1},
                                        {Step::kUnpackRecomputed, 1},
                                        {Step::kRecomputedInUse, 1}}));
}

TEST_F(SpanOfTwoDevicesTest, AResultOfAnotherDeviceWaitsForNothing) {
  const Span span = replayer.begin();
  Seen op = seen({}, {make_there()});
  op.run = [this](const Tensors&) { return Tensors{make_there()}; };
  const Tensor made = op.outputs.front();
  span->ran(std::exchange(op, {}));
  const Save saved = save(span, made);
  span->end();
  backward([&] {
    const SpanDevice::StreamScope side(device(), world.stream(1));
    EXPECT_NE(saved->unpack(), nullptr);
  });
  EXPECT_EQ(counts().replays, 1);
  EXPECT_EQ(*calls, FrameDevice::Calls{});
}

}  // namespace
}  // namespace ferry::test
