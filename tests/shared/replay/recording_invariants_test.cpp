// Each assertion of replays is seen to fail: recordings, what is made again, and the counts.
#include <gtest/gtest.h>

#include "shared/replay/remade.h"
#include "tests/shared/replay/span_rig.h"

namespace ferry::test {
namespace {

class RecordingInvariants : public ReplayTest {
 protected:
  using Recording = ReplayRecording<SpanDevice>;
  using Call = ReplayCall<SpanDevice>;
};

TEST_F(RecordingInvariants, CallsSpeakOfStoragesThatAreKnown) {
  Recording recording;
  Call call;
  call.writes = {0};
  EXPECT_DEATH(recording.add(call), "a recorded call writes only what the span made");
  call.writes.clear();
  call.makes = {{0, 0}};
  EXPECT_DEATH(recording.add(call), "a storage has its number before its call");
  call.makes.clear();
  call.arguments.emplace_back(Call::Window{0, device().layout(make())});
  EXPECT_DEATH(recording.add(call), "a window is on a storage that is made");
}

TEST_F(RecordingInvariants, OnlyWhatWasRecordedIsNeeded) {
  Recording recording;
  EXPECT_DEATH(recording.needed({{0, 0}}, {}), "only a storage that the span made is made again");
  recording.add_storage(kBytes);
  EXPECT_DEATH(recording.needed({{0, 1}}, {}), "no saved tensor is from after the last call");
  EXPECT_DEATH(recording.keep_only({0}), "a call that is kept was recorded");
}

TEST_F(RecordingInvariants, AnArgumentIsPassedOnce) {
  HeldArgument<SpanDevice> held(device(), make(), true);
  held.pass(nullptr);
  EXPECT_DEATH(held.pass(nullptr), "an argument is passed to the hooks around once");
}

TEST_F(RecordingInvariants, AReplayFindsWhatItMadeAndHasNotDropped) {
  RemadeStorages<int> made(1);
  EXPECT_DEATH(made.at(0), "a call that runs again finds what it reads");
  EXPECT_DEATH(made.drop(0), "a replay drops what it has made");
  made.put(0, 5);
  EXPECT_DEATH(made.put(0, 5), "a replay makes a storage once");
}

TEST_F(RecordingInvariants, SpansThatEndBegan) {
  Script script;
  FrameThread thread;
  ReplayState<SpanDevice, FrameAutograd> state(device(), FrameAutograd(script, thread), Rules());
  EXPECT_DEATH(state.count(&ReplayStatistics::alive, -1), "no more spans end than began");
}

}  // namespace
}  // namespace ferry::test
