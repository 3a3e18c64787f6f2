// Each assertion of the offloader's core is seen to fail, by saves that it did not make itself.
#include "shared/offload/offload_core.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/shared/offload/offloader_rig.h"

namespace ferry {
namespace {

class OffloadCoreInvariants : public ::testing::Test {
 protected:
  using Core = OffloadCore<sim::SimDevice, test::ScriptAutograd>;
  using ParcelRef = Core::ParcelRef;

  // A save of a parcel that nobody sent, with so many saves.
  std::unique_ptr<Core::Save> save_of(int saves) {
    const sim::Tensor x = world.make(test::kBytes);
    auto parcel = std::make_shared<Parcel<sim::SimDevice>>();
    parcel->version = x->version;
    parcel->extent = {0, test::kBytes};
    parcel->saves = saves;
    return std::make_unique<Core::Save>(core, std::move(parcel), world.device().layout(x),
                                        Core::Place());
  }

  test::World world;
  test::Script script;
  const std::shared_ptr<Core> core = std::make_shared<Core>(
      world.device(), test::ScriptAutograd(script), test::eager_options(), Rules());
};

TEST_F(OffloadCoreInvariants, ASaveHasAParcelThatWasSent) {
  Core::Save unsent(core, nullptr, world.device().layout(world.make(test::kBytes)), {});
  EXPECT_DEATH(unsent.unpack(), "a save that is unpacked was sent");
  EXPECT_DEATH(save_of(0)->unpack(), "a parcel lives as long as a save of it");
  EXPECT_DEATH(save_of(0).reset(), "a parcel loses no more saves than it has");
  EXPECT_DEATH(save_of(1).reset(), "no more parcels die than were sent");
}

}  // namespace
}  // namespace ferry
