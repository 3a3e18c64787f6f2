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

TEST(Forward, StoragesAndTheHostAreAsTheUpstreamDeviceSays) {
  sim::MachineOptions options;
  options.devices = 2;
  options.host_total_bytes = 1 << 20;
  test::World here(options);
  SimDevice alone = here.device();
  Forward<SimDevice> device(alone);
  sim::Machine& machine = here.machine();
  const sim::Tensor x = here.make(1024);
  const sim::Tensor far = sim::make_tensor(machine.allocate(1024, machine.compute_stream(1, 0)),
                                           x->layout, machine.new_version());
  x->version->value = 3;
  EXPECT_EQ(device.current_stream(), alone.current_stream());
  EXPECT_FALSE(device.is_host(device.current_stream()));
  for (const sim::Tensor& each : {x, far}) {
    const sim::Storage storage = device.storage(each);
    EXPECT_EQ(storage, each->storage);
    EXPECT_EQ(device.bytes(storage), 1024);
    EXPECT_EQ(device.address(storage), storage->address);
    EXPECT_EQ(device.identity(storage), storage->identity);
    EXPECT_EQ(device.owner(storage), alone.owner(storage));
    EXPECT_TRUE(device.exists(storage));
    EXPECT_EQ(device.use_count(storage), storage.use_count());
    EXPECT_EQ(device.lock(device.weak(storage)), storage);
    EXPECT_EQ(device.on_device(each), each == x);
    EXPECT_EQ(device.dense(each), alone.dense(each));
    EXPECT_EQ(device.read(device.version(each)), each == x ? 3u : 0u);
  }
  EXPECT_FALSE(device.exists(sim::Storage()));
  EXPECT_EQ(device.host_usage().total_bytes, alone.host_usage().total_bytes);
}

}  // namespace
}  // namespace ferry
