#include "shared/adaptors/forward.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

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

// A device whose tensors are none that a span of operators may know by their storage.
struct Unplain : SimDevice {
  explicit Unplain(SimDevice device) : SimDevice(device) {}
  static bool plain(const Tensor&) { return false; }
};

TEST(Forward, WhatATensorIsTheUpstreamDeviceSays) {
  test::World world;
  SimDevice alone = world.device();
  Twice device{Forward(alone)};
  sim::Tensor x = world.make(4096);
  EXPECT_TRUE(device.plain(x));
  EXPECT_FALSE(Forward<Unplain>(Unplain(alone)).plain(x));
  EXPECT_EQ(device.metadata(x), alone.metadata(x));
  EXPECT_EQ(device.metadata(x).shape, std::vector<std::int64_t>{4096});
  EXPECT_EQ(device.describe(device.metadata(x)), "shape [4096], dtype u8");
  const sim::Version version = device.version(x);
  EXPECT_FALSE(device.unique(version)) << "the tensor has it, too";
  x.reset();
  EXPECT_TRUE(device.unique(version));
}

}  // namespace
}  // namespace ferry
