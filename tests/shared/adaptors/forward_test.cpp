#include "shared/adaptors/forward.h"

#include <gtest/gtest.h>

#include "tests/shared/adaptors/round_trip.h"

namespace ferry {
namespace {

using sim::SimDevice;
using Twice = Forward<Forward<SimDevice>>;
static_assert(Device<Twice> && PipelineDevice<Twice>);

TEST(Forward, ADeviceUnderAdaptorsDoesWhatItDoesAlone) {
  const test::Text alone = test::operations([](SimDevice device) { return device; });
  EXPECT_EQ(alone.size(), 14u);
  EXPECT_EQ(test::operations([](SimDevice device) { return Twice(Forward(device)); }), alone);
}

TEST(Forward, AStreamScopeIsTheUpstreamDevices) {
  test::World world;
  Twice device(Forward(world.device()));
  {
    const Twice::StreamScope scope(device, world.stream(1));
    EXPECT_EQ(world.machine().current_stream(), world.stream(1));
    EXPECT_EQ(device.current_stream(), world.stream(1));
  }
  EXPECT_EQ(device.current_stream(), world.stream(0));
}

}  // namespace
}  // namespace ferry
