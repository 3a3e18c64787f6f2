// Which calls a span's recorder takes, and which tensors it knows as made: what it does not
// understand is from outside.
#include "shared/replay/recorder.h"

#include <gtest/gtest.h>

#include <utility>
#include <variant>

#include "tests/shared/replay/span_rig.h"

namespace ferry::test {
namespace {

class RecorderTest : public ReplayTest {
 protected:
  ~RecorderTest() override {
    recording = {};
    expect_clean();
  }
  bool ran(Arguments arguments, Tensors outputs) {
    return ran(seen(std::move(arguments), std::move(outputs)));
  }
  bool ran(Seen call) { return recorder.ran(recording, call); }
  bool is_made(const Tensor& tensor) { return recorder.find(tensor).has_value(); }
  Tensor made() {
    const Tensor tensor = make();
    EXPECT_TRUE(ran({}, {tensor}));
    return tensor;
  }

  SpanRecorder<SpanDevice> recorder{device()};
  ReplayRecording<SpanDevice> recording;
};

TEST_F(RecorderTest, AnArgumentIsReadAloneAndMayMoveUnlessItIsSaidOtherwise) {
  const Tensor x = make();
  const Tensor y = make();
  ASSERT_TRUE(ran({{x}}, {y}));
  const auto& arguments = recording.call(0)->arguments;
  ASSERT_EQ(arguments.size(), 1u);
  EXPECT_TRUE(std::get<ReplayCall<SpanDevice>::Held>(arguments[0])->passing().has_value());
  EXPECT_TRUE(recording.call(0)->writes.empty());
}

TEST_F(RecorderTest, EachOutputOfACallIsMade) {
  const Tensor first = make();
  const Tensor second = make();
  ASSERT_TRUE(ran({}, {first, second}));
  EXPECT_EQ(recorder.find(first)->storage, 0u);
  EXPECT_EQ(recorder.find(second)->storage, 1u);
  EXPECT_EQ(recording.call(0)->makes.size(), 2u);
}

TEST_F(RecorderTest, ACallThatCannotRunAgainIsNoneAndWhatItMakesIsFromOutside) {
  const Tensor y = make();
  Seen call = seen({}, {y});
  call.run = nullptr;
  EXPECT_FALSE(ran(std::move(call)));
  EXPECT_FALSE(is_made(y));
  EXPECT_EQ(recording.position(), 0u);
}

TEST_F(RecorderTest, AViewOfWhatIsMadeIsNoCall) {
  const Tensor y = made();
  const Tensor window = view(y);
  EXPECT_FALSE(ran({{y}}, {window}));
  EXPECT_EQ(recording.position(), 1u);
  EXPECT_EQ(recorder.find(window)->storage, 0u);
}

TEST_F(RecorderTest, AViewOfWhatIsFromOutsideIsFromOutside) {
  const Tensor x = make();
  const Tensor window = view(x);
  EXPECT_FALSE(ran({{make()}, {x}}, {window}));
  EXPECT_FALSE(is_made(window));
  EXPECT_EQ(recording.position(), 0u);
}

// A module's cache, say: it is given back, but not among the arguments.
TEST_F(RecorderTest, WhatWasMadeBeforeIsNotMadeAgain) {
  const Tensor y = made();
  EXPECT_FALSE(ran({}, {y})) << "it makes nothing";
  const Tensor z = make();
  ASSERT_TRUE(ran({}, {y, z, view(z)}));
  EXPECT_EQ(recording.storages(), 2u);
  ASSERT_EQ(recording.call(1)->makes.size(), 1u);
  EXPECT_EQ(recording.call(1)->makes[0].output, 1u);
}

TEST_F(RecorderTest, TensorsWithoutAStorageAreHeldAndNotMade) {
  const Tensor nothing = without_storage();
  const Tensor y = make();
  ASSERT_TRUE(ran({{nothing}, {make()}}, {without_storage(), y}));
  EXPECT_FALSE(is_made(nothing));
  ASSERT_EQ(recording.call(0)->makes.size(), 1u);
  EXPECT_EQ(recording.call(0)->makes[0].output, 1u);
  EXPECT_TRUE(ran({{nothing}}, {make()}));
}

// A conjugated view, say: restoring a window would not give it.
TEST_F(RecorderTest, ATensorThatIsMoreThanAWindowIsNotFound) {
  const Tensor y = made();
  EXPECT_FALSE(is_made(odd(view(y))));
  EXPECT_TRUE(is_made(y));
}

TEST_F(RecorderTest, NorIsACallRecordedThatTakesOneOfWhatIsMade) {
  const Tensor y = made();
  const Tensor z = make();
  EXPECT_FALSE(ran({{odd(view(y))}}, {z}));
  EXPECT_FALSE(is_made(z));
  EXPECT_TRUE(is_made(y)) << "it was read alone";
  EXPECT_TRUE(ran({{odd(make())}}, {make()})) << "one from outside is held as it is";
}

TEST_F(RecorderTest, NorOneThatMakesOne) {
  const Tensor plain = make();
  EXPECT_FALSE(ran({}, {plain, odd(make())}));
  EXPECT_FALSE(is_made(plain));
}

TEST_F(RecorderTest, AfterItsEndEverythingIsFromOutside) {
  const Tensor y = made();
  const Tensor z = made();
  EXPECT_EQ(notes->weak_references(), 2);
  recorder.end();
  EXPECT_EQ(notes->weak_references(), 0) << "nothing stands for a storage any more";
  EXPECT_FALSE(is_made(y));
  EXPECT_FALSE(is_made(z));
}

}  // namespace
}  // namespace ferry::test
