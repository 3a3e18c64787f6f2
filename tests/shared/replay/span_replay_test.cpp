// One replay by itself: the stream on which its calls run, what is alive meanwhile, and what it
// says of an operator that makes something else than in forward.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "shared/replay/replayer.h"
#include "tests/shared/replay/span_rig.h"

namespace ferry::test {
namespace {

class SpanReplayTest : public SpanTest {
 protected:
  // Runs an operator with these outputs, and as `again` where it is run again.
  Tensor call_of(const Span& span, Arguments arguments, Tensors outputs,
                 ReplayCall<SpanDevice>::Run again) {
    const Tensor made = outputs.front();
    Seen call = seen(std::move(arguments), std::move(outputs));
    call.run = std::move(again);
    span->ran(std::move(call));
    return made;
  }
  // What unpacking throws where an operator of one output comes to this when it runs again.
  std::string error_of_making(const std::vector<std::int64_t>& bytes) {
    const Span span = replayer.begin();
    const Save saved = save(span, call_of(span, {}, {make()}, [&](const Tensors&) {
                              Tensors made;
                              for (const std::int64_t each : bytes) {
                                made.push_back(world.make(each));
                              }
                              return made;
                            }));
    span->end();
    std::string error;
    backward([&] { error = error_of([&] { saved->unpack(); }); });
    EXPECT_EQ(live(), 0);
    return error;
  }
};

TEST_F(SpanReplayTest, CallsRunAgainOnTheSpansStreamWhichIsNoLongerCurrentThen) {
  const Span span = replayer.begin();
  std::vector<StreamId> streams;
  const Save saved = save(span, call_of(span, {}, {make()}, [&](const Tensors&) {
                            streams.push_back(world.machine().current_stream());
                            return Tensors{make()};
                          }));
  span->end();
  backward([&] {
    const SpanDevice::StreamScope side(device(), world.stream(1));
    saved->unpack();
    EXPECT_EQ(world.machine().current_stream(), world.stream(1));
  });
  EXPECT_EQ(streams, std::vector<StreamId>{world.stream(0)});
}

// a and a mask; b of a; c of b: c alone is saved.
TEST_F(SpanReplayTest, WhatACallMakesGoesWithTheLastCallThatTakesIt) {
  const Span span = replayer.begin();
  std::vector<std::int64_t> alive;
  const auto again = [&](std::size_t outputs) {
    return [&, outputs](const Tensors&) {
      alive.push_back(live());
      Tensors made;
      while (made.size() < outputs) made.push_back(make());
      return made;
    };
  };
  const Save saved = [&] {
    const Tensor a = call_of(span, {}, {make(), make()}, again(2));
    const Tensor b = call_of(span, {{a}}, {make()}, again(1));
    return save(span, call_of(span, {{b}}, {make()}, again(1)));
  }();
  span->end();
  EXPECT_EQ(live(), 0);
  backward([&] { saved->unpack(); });
  EXPECT_EQ(alive, (std::vector<std::int64_t>{0, 1, 1}))
      << "the mask goes with its own call, and a with b's";
}

TEST_F(SpanReplayTest, AnOperatorThatMakesAStorageOfAnotherSizeIsAnError) {
  EXPECT_EQ(error_of_making({kBytes / 2}),
            "ferry::replay: an operator that ran again made a storage of 2048 bytes, and in "
            "forward one of 4096");
}

TEST_F(SpanReplayTest, SoIsOneThatMakesFewerTensors) {
  EXPECT_EQ(error_of_making({}),
            "ferry::replay: an operator that ran again made a storage of -1 bytes, and in "
            "forward one of 4096");
}

TEST_F(SpanReplayTest, OneThatMakesTheSameIsNone) { EXPECT_EQ(error_of_making({kBytes}), ""); }

}  // namespace
}  // namespace ferry::test
