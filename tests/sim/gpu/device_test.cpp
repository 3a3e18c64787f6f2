// What a SimDevice has beyond the contract (tests/support/device_conformance.h): others beside it.
#include "sim/gpu/device.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/sim/support/tiny.h"
#include "tests/sim/support/world.h"

namespace ferry::sim {
namespace {

struct DeviceTest : ::testing::Test {
  static MachineOptions options() {
    MachineOptions options;
    options.devices = 2;
    return options;
  }
  DeviceTest() { world.machine().add_consumer(&log); }

  // To the other device, after what the current stream was given.
  Tensor fetch(const Tensor& tensor, StreamId stream) {
    other.wait(Step::kUser, stream, one.record(Step::kUser, one.current_stream()));
    return one.transfer(Step::kUser, tensor, other, stream);
  }

  test::OpLog log;
  test::World world{options()};
  SimDevice one{world.machine(), 0};
  SimDevice other{world.machine(), 1};
};

TEST_F(DeviceTest, StreamsAndTensorsAreOfOneDevice) {
  EXPECT_EQ(other.compute_stream(), world.machine().compute_stream(1, 0));
  EXPECT_EQ(other.lane(Lane::kDeviceToHost), world.machine().lane(1, Lane::kDeviceToHost));
  EXPECT_EQ(other.transfer_stream(2), world.machine().transfer_stream(1, 2));
  const Tensor tensor = world.make(64);
  EXPECT_TRUE(one.on_device(tensor));
  EXPECT_FALSE(other.on_device(tensor));
}

TEST_F(DeviceTest, ATransferIsACopyOnTheOtherDevice) {
  const Tensor tensor = world.make(contiguous_layout(DType::kF32, {4, 8}));
  const StreamId stream = other.transfer_stream(0);
  const Tensor copy = fetch(tensor, stream);
  EXPECT_TRUE(other.on_device(copy));
  EXPECT_EQ(other.owner(copy->storage), stream);
  EXPECT_EQ(world.contents(copy), world.contents(tensor));
  EXPECT_NE(copy->version->identity, tensor->version->identity);
  const test::LoggedOp moved = log.of(StreamOpKind::kCopy).at(0);
  EXPECT_EQ(moved.copy, CopyKind::kPeer);
  EXPECT_EQ(moved.stream, stream);
  world.write(tensor);  // it is a copy
  EXPECT_NE(world.contents(copy), world.contents(tensor));
  EXPECT_EQ(copy->version->value, 0u);
}

TEST_F(DeviceTest, OnlyWhatTheTensorCoversTravelsAndItsLayoutStays) {
  const Tensor base = world.make(contiguous_layout(DType::kF32, {100}));
  const Tensor column = world.view(base, {DType::kF32, {3}, {10}, 20});  // bytes 80 to 164
  const Tensor copy = fetch(column, other.transfer_stream(0));
  EXPECT_EQ(copy->storage->bytes, 84);
  EXPECT_EQ(range_of(copy), range_of(copy->storage));
  EXPECT_EQ(copy->layout.window, column->layout.window);
  EXPECT_EQ(world.contents(copy), world.contents(column));
  // Back again it is shifted already.
  const Tensor back = other.transfer(Step::kUser, copy, one, one.transfer_stream(0));
  EXPECT_EQ(range_of(back), range_of(back->storage));
  EXPECT_EQ(back->storage->bytes, 84);
}

TEST_F(DeviceTest, ATransferToTheSameDeviceIsAnotherHandle) {
  const Tensor tensor = world.make(64);
  const Tensor same = one.transfer(Step::kUser, tensor, one, one.transfer_stream(0));
  EXPECT_NE(same, tensor);
  EXPECT_EQ(same->storage, tensor->storage);
  EXPECT_EQ(same->version, tensor->version);
  EXPECT_TRUE(log.of(StreamOpKind::kCopy).empty());
}

TEST_F(DeviceTest, ATensorWithoutBytesNeedsNoCopy) {
  const Tensor copy =
      fetch(world.make(contiguous_layout(DType::kF32, {0})), other.compute_stream());
  EXPECT_TRUE(other.on_device(copy));
  EXPECT_TRUE(log.of(StreamOpKind::kCopy).empty());
}

TEST_F(DeviceTest, AnUnorderedTransferIsFound) {
  const Tensor tensor = world.make(64);
  const StreamId stream = other.transfer_stream(0);
  const Tensor copy = fetch(tensor, stream);
  EXPECT_TRUE(world.hazards().empty());
  one.transfer(Step::kUser, tensor, other, other.transfer_stream(1));  // not after the producer
  ASSERT_EQ(world.hazards().size(), 1u);
  EXPECT_NE(world.hazards()[0].find("read after write"), std::string::npos);
  world.machine().set_current_stream(other.compute_stream());
  world.use(copy);  // not after the copy
  EXPECT_EQ(world.hazards().size(), 2u);
}

TEST_F(DeviceTest, MetadataSaysWhichDeviceAndItsTextOnlyOfOthersThanTheFirst) {
  const Tensor tensor = world.make(64);
  const Tensor copy = fetch(tensor, other.transfer_stream(0));
  EXPECT_FALSE(one.metadata(tensor) == other.metadata(copy));
  EXPECT_EQ(one.describe(one.metadata(tensor)), "shape [64], dtype u8");
  EXPECT_EQ(other.describe(other.metadata(copy)), "shape [64], dtype u8, device 1");
}

}  // namespace
}  // namespace ferry::sim
