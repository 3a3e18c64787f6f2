// The parts of a recording by themselves: an argument that is held until hooks around have it, and
// the calls that a target needs.
#include "shared/replay/recording.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "tests/shared/replay/span_rig.h"

namespace ferry::test {
namespace {

class RecordingTest : public ReplayTest {
 protected:
  using Held = HeldArgument<SpanDevice>;
  using Recording = ReplayRecording<SpanDevice>;
  using Numbers = std::vector<std::size_t>;
  ~RecordingTest() override { expect_clean(); }

  static ReplayCall<SpanDevice> making(std::size_t storage) {
    ReplayCall<SpanDevice> call;
    call.makes = {{storage, 0}};
    return call;
  }
  // Of so many calls that each make a storage of nothing.
  static Recording calls_of(std::size_t count) {
    Recording recording;
    for (std::size_t i = 0; i < count; ++i) recording.add(making(recording.add_storage(kBytes)));
    return recording;
  }
};

TEST_F(RecordingTest, AnArgumentGoesToTheHooksAroundOnce) {
  const Tensor x = make();
  Held held(device(), x, true);
  EXPECT_EQ(held.passing(), x);
  const auto former = held.saved();
  const std::shared_ptr<Saved<Tensor>> packed = Around().pack(x);
  const auto dropped = held.pass(packed);
  EXPECT_EQ(dropped.first, x) << "who calls it drops what was held, outside of any lock";
  EXPECT_EQ(dropped.second, former);
  EXPECT_EQ(held.saved(), packed);
  EXPECT_FALSE(held.passing().has_value());
}

TEST_F(RecordingTest, AnArgumentThatTheHooksAroundLeaveStays) {
  const Tensor x = make();
  Held held(device(), x, true);
  const auto former = held.saved();
  const auto dropped = held.pass(nullptr);
  EXPECT_EQ(dropped.second, nullptr);
  EXPECT_EQ(held.saved(), former);
  EXPECT_FALSE(held.passing().has_value());
  EXPECT_EQ(held.saved()->unpack(), x);
}

TEST_F(RecordingTest, AnArgumentThatHooksMayNotMoveStays) {
  const Tensor x = make();
  const Held held(device(), x, false);
  EXPECT_FALSE(held.passing().has_value());
  EXPECT_EQ(held.saved()->unpack(), x);
}

TEST_F(RecordingTest, AnArgumentThatWasWrittenStays) {
  const Tensor x = make();
  const Held held(device(), x, true);
  world.write(x);
  EXPECT_FALSE(held.passing().has_value());
}

TEST_F(RecordingTest, ATargetIsTheFirstStorageBeforeAnyCallUnlessItIsSaidOtherwise) {
  const Recording recording = calls_of(2);
  EXPECT_EQ(recording.needed({ReplayTarget{}}, {}), Numbers{});
  EXPECT_EQ(recording.needed({{.position = 2}}, {}), Numbers{0});
  EXPECT_EQ(recording.needed({{.storage = 1, .position = 2}}, {}), Numbers{1});
}

TEST_F(RecordingTest, CallsThatAreForgottenKeepTheirNumbersAndGoToWhoAsked) {
  Recording recording = calls_of(3);
  const auto last = recording.call(2);
  auto dropped = recording.keep_only({2});
  ASSERT_EQ(dropped.size(), 3u);
  for (const auto& call : dropped) EXPECT_NE(call, nullptr);
  EXPECT_EQ(recording.call(0), nullptr);
  EXPECT_EQ(recording.call(1), nullptr);
  EXPECT_EQ(recording.call(2), last);
  EXPECT_EQ(recording.position(), 3u);
  EXPECT_EQ(recording.needed({{.storage = 2, .position = 3}}, {}), Numbers{2});
}

}  // namespace
}  // namespace ferry::test
