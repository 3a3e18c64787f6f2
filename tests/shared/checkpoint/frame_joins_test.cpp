// How the streams of a recompute, and of those whom it serves, are ordered.
#include <utility>

#include "shared/checkpoint/frame.h"
#include "tests/shared/checkpoint/frames.h"

namespace ferry::test {
namespace {

class FrameTwoDevicesTest : public FrameTest {
 protected:
  static sim::MachineOptions two() {
    sim::MachineOptions options;
    options.devices = 2;
    return options;
  }
  FrameTwoDevicesTest() : FrameTest(two()) {}
  // On device 1.
  Tensor make_there() {
    const sim::SimDevice::StreamScope scope(world.device(), world.machine().compute_stream(1, 0));
    return world.make(kBytes);
  }
};

// What forward began on waits for each other stream on which the function saved, once.
TEST_F(FrameTest, AnEarlyStopJoinsEachStreamThatSavedOnce) {
  Saves saves = run([&](Saves& s) {
    for (const std::uint32_t number : {0, 1, 1, 2, 0, 2}) {
      const sim::SimDevice::StreamScope scope(world.device(), world.stream(number));
      save(s, world.make(kBytes));
    }
  });
  script.backward([&] {
    saves[0]->unpack();
    EXPECT_EQ((*calls)[Step::kRecomputed], 2);
    EXPECT_EQ((*calls)[Step::kUnpackRecomputed], 2);
    EXPECT_EQ((*calls)[Step::kRecomputedInUse], 0);
    saves.clear();
  });
}

TEST_F(FrameTest, ATensorIsHandedOverToTheStreamThatUnpacksIt) {
  Saves saves = run_saving(2);
  script.backward([&] {
    const sim::SimDevice::StreamScope scope(world.device(), world.stream(1));
    world.use(saves[0]->unpack());
    world.use(saves[1]->unpack());
  });
  EXPECT_EQ((*calls)[Step::kUnpackRecomputed], 2);
  EXPECT_EQ((*calls)[Step::kRecomputedInUse], 2);
}

// Its bytes are not these streams' to order.
TEST_F(FrameTwoDevicesTest, ATensorOfAnotherDeviceIsNotHandedOver) {
  Saves saves = run([&](Saves& s) { save(s, make_there()); });
  script.backward([&] {
    const sim::SimDevice::StreamScope scope(world.device(), world.stream(1));
    saves[0]->unpack();
  });
  EXPECT_EQ((*calls)[Step::kUnpackRecomputed], 0);
  EXPECT_EQ((*calls)[Step::kRecomputedInUse], 0);
}

}  // namespace
}  // namespace ferry::test
