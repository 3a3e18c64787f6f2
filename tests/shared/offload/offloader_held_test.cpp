// A storage that was saved several times comes back once for a backward, and goes when the last of
// its saves that this backward unpacks has been served.
#include <gtest/gtest.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "shared/adaptors/observed.h"
#include "tests/shared/offload/offloader_rig.h"

namespace ferry {
namespace {

using test::kBytes;
using test::Rig;
using test::SaveRef;

class OffloaderHeld : public ::testing::Test {
 protected:
  static CoreOptions holding() {
    CoreOptions options = test::eager_options();
    options.hold_bytes = test::kMiB;
    return options;
  }
  // As many saves of one tensor, which has left the device.
  std::vector<SaveRef> saves_of_one(int count) {
    const sim::Tensor x = rig.world.make(kBytes);
    std::vector<SaveRef> saves;
    for (int i = 0; i < count; ++i) saves.push_back(rig.pack(x));
    rig.evict();
    return saves;
  }
  std::int64_t reloads() const { return rig.world.copies(Step::kReload); }
  std::int64_t on_device() const { return rig.offloader.statistics().backward_stash_bytes; }

  Rig rig{holding()};
};

TEST_F(OffloaderHeld, AllSavesOfABackwardShareOneReloadAndItGoesWithTheLast) {
  const std::vector<SaveRef> saves = saves_of_one(3);
  for (int backward = 1; backward <= 3; ++backward) {
    rig.script.backward([&] {
      rig.consume(saves[2]);
      rig.consume(saves[1]);
      EXPECT_EQ(on_device(), kBytes);
      rig.consume(saves[0]);
      EXPECT_EQ(on_device(), 0) << "before the backward ends";
    });
    EXPECT_EQ(reloads(), backward);
  }
}

TEST_F(OffloaderHeld, SavesThatDieAsTheyAreUnpackedShareItAsWell) {
  std::vector<SaveRef> saves = saves_of_one(4);
  rig.script.backward([&] {
    while (!saves.empty()) {
      rig.consume(saves.back());
      saves.pop_back();
      EXPECT_EQ(on_device(), saves.empty() ? 0 : kBytes);
    }
  });
  EXPECT_EQ(reloads(), 1);
}

TEST_F(OffloaderHeld, UnpackingOneSaveAgainLeavesItToTheOthers) {
  const std::vector<SaveRef> saves = saves_of_one(2);
  rig.script.backward([&] {
    for (int i = 0; i < 3; ++i) rig.consume(saves[1]);
    EXPECT_EQ(on_device(), kBytes);
    rig.consume(saves[0]);
    EXPECT_EQ(on_device(), 0);
  });
  EXPECT_EQ(reloads(), 1);
}

// What an earlier backward unpacked, or none, is not among those that this one has served.
TEST_F(OffloaderHeld, ASaveThatDiesWithoutThisBackwardIsWaitedForNoMore) {
  for (const bool unpacked_before : {false, true}) {
    std::vector<SaveRef> saves = saves_of_one(3);
    if (unpacked_before) rig.script.backward([&] { rig.consume(saves[0]); });
    rig.script.backward([&] {
      rig.consume(saves[2]);
      saves[0].reset();
      EXPECT_EQ(on_device(), kBytes) << "for the one that is left";
      rig.consume(saves[1]);
      EXPECT_EQ(on_device(), 0);
    });
  }
}

TEST_F(OffloaderHeld, WhatIsHeldForASaveThatDiesGoesWithIt) {
  std::vector<SaveRef> saves = saves_of_one(2);
  rig.script.backward([&] {
    rig.consume(saves[1]);
    EXPECT_EQ(on_device(), kBytes);
    saves[0].reset();
    EXPECT_EQ(on_device(), 0);
  });
}

// The save that the inner one unpacked dies there, and the outer one has unpacked both others.
TEST_F(OffloaderHeld, ABackwardInsideAnotherTakesNothingFromItsCount) {
  for (const bool dies_last : {false, true}) {
    std::vector<SaveRef> saves = saves_of_one(3);
    rig.script.backward([&] {
      rig.consume(saves[2]);
      rig.script.backward([&] { rig.consume(saves[1]); });
      if (!dies_last) saves[1].reset();
      rig.consume(saves[0]);
      EXPECT_EQ(on_device(), dies_last ? kBytes : 0);
      saves[1].reset();
      EXPECT_EQ(on_device(), 0) << "before the outer one ends";
    });
  }
}

// It will be tried again, and shares the reload with the other then.
TEST(OffloaderHeldFailure, AnUnpackThatFailedIsStillToCome) {
  CoreOptions options = test::eager_options();
  options.hold_bytes = test::kMiB;
  test::World world;
  test::Script script;
  const auto fault = std::make_shared<FaultPoint>(Step::kReload, 0);
  Offloader<Faulty<sim::SimDevice>, test::ScriptAutograd> offloader(
      Faulty<sim::SimDevice>(world.device(), fault), test::ScriptAutograd(script), options);
  sim::Tensor x = world.make(kBytes);
  std::vector<SaveRef> saves;
  for (int i = 0; i < 2; ++i) saves.push_back(offloader.hooks()->pack(x));
  x.reset();
  offloader.hooks()->pack(world.make(test::Rig::kTiny));
  const auto consume = [&](const SaveRef& save) {
    script.node([&] { world.use(save->unpack()); });
  };
  script.backward([&] {
    EXPECT_THROW(consume(saves[1]), std::exception);
    consume(saves[0]);
    EXPECT_EQ(offloader.statistics().backward_stash_bytes, kBytes) << "for the one that failed";
    consume(saves[1]);
    EXPECT_EQ(offloader.statistics().backward_stash_bytes, 0);
  });
  EXPECT_EQ(world.copies(Step::kReload), 1);
}

}  // namespace
}  // namespace ferry
