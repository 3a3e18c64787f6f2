// Bends at their edges: what an adaptor without one leaves alone, one lane for both directions, two
// late calls in a row, and copies between devices.
#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "shared/adaptors/bent.h"
#include "tests/shared/adaptors/round_trip.h"
#include "tests/sim/support/pipeline_rig.h"

namespace ferry {
namespace {

using sim::SimDevice;
using test::Text;

TEST(Bends, HaveTheNamesOfTheTable) {
  EXPECT_EQ(name(Bend::kDrop), "drop");
  EXPECT_EQ(name(Bend::kOtherStream), "other stream");
  EXPECT_EQ(name(Bend::kDelay), "delay");
  EXPECT_EQ(name(Bend::kStale), "stale");
}

// The program's own calls are of the first step there is, and to drop is the first bend.
TEST(BentEdges, WithoutAMutationTheProgramsOwnCallsAreMade) {
  test::World world;
  Bent<SimDevice> device(world.device(), std::nullopt);
  EXPECT_NE(device.record(Step::kUser, world.stream(0)), sim::EventHandle());
}

// An event that is held keeps its number from being given out again, which would change a log.
TEST(BentEdges, OnlyAStaleMutantHoldsEvents) {
  const auto held = [](std::optional<Mutation> mutation) {
    test::World world;
    Bent<SimDevice> device(world.device(), mutation);
    device.record(Step::kReloaded, world.stream(0));
    return world.machine().live_events();
  };
  EXPECT_EQ(held({}), 0);
  EXPECT_EQ(held(Mutation{Step::kConsume, Bend::kDrop}), 0);
  EXPECT_EQ(held(Mutation{Step::kConsume, Bend::kDelay}), 0);
  EXPECT_EQ(held(Mutation{Step::kReloaded, Bend::kOtherStream}), 0);
  EXPECT_EQ(held(Mutation{Step::kReloaded, Bend::kStale}), 1);
}

TEST(BentEdges, OfTwoDelayedCallsTheFirstIsMadeBeforeTheSecond) {
  test::World world;
  Bent<SimDevice> device(world.device(), Mutation{Step::kConsume, Bend::kDelay});
  const std::array events = {device.record(Step::kReloaded, world.stream(1)),
                             device.record(Step::kReloaded, world.stream(1))};
  test::Lines lines;
  world.machine().add_consumer(&lines);
  for (const auto& event : events) device.wait(Step::kConsume, world.stream(0), event);
  EXPECT_EQ(lines.lines, Text{"consume 0 e0"});
  const auto done = device.record(Step::kNodeDone, world.stream(0));
  EXPECT_EQ(lines.lines, (Text{"consume 0 e0", "node done 0 e2", "consume 0 e1"}));
}

// Copies in both directions share a stream where the options say so.
struct OneLane : SimDevice {
  using SimDevice::SimDevice;
  explicit OneLane(SimDevice device) : SimDevice(device) {}
  Stream lane(Lane) { return SimDevice::lane(Lane::kDeviceToHost); }
};

TEST(BentEdges, WhereThereIsOneLaneItsOtherStreamComputes) {
  test::World world;
  Bent<OneLane> device(OneLane(world.device()), Mutation{Step::kOffloaded, Bend::kOtherStream});
  const StreamId lane = device.lane(Lane::kHostToDevice);
  EXPECT_EQ(device.record(Step::kOffloaded, lane)->stream, world.stream(0));
  EXPECT_EQ(device.record(Step::kOffloaded, world.stream(0))->stream, lane);
  EXPECT_EQ(device.record(Step::kReloaded, lane)->stream, lane);
}

TEST(BentEdges, ATransferOnAnotherStreamArrivesWhereItsDeviceComputes) {
  const auto arrives_on = [](std::optional<Mutation> mutation) {
    test::PipelineRig rig(2);
    const auto from = rig.place(0);
    const auto to = rig.place(1);
    Bent<SimDevice> source(from.device, mutation);
    Bent<SimDevice> target(to.device, mutation);
    const sim::Tensor copy = source.transfer(Step::kReceive, rig.fresh(), target, to.arrivals);
    EXPECT_EQ(copy->storage->device, 1u);
    const StreamId stream = copy->storage->block->stream();
    EXPECT_TRUE(stream == to.arrivals || stream == to.compute);
    return stream == to.arrivals ? "arrivals" : "compute";
  };
  EXPECT_STREQ(arrives_on({}), "arrivals");
  EXPECT_STREQ(arrives_on(Mutation{Step::kConsume, Bend::kOtherStream}), "arrivals");
  EXPECT_STREQ(arrives_on(Mutation{Step::kReceive, Bend::kOtherStream}), "compute");
}

}  // namespace
}  // namespace ferry
