#include "shared/adaptors/bent.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <utility>

#include "tests/shared/adaptors/round_trip.h"

namespace ferry {
namespace {

using sim::SimDevice;
using test::Text;

Text bent_trip(std::optional<Mutation> mutation) {
  return test::operations([&](sim::SimDevice device) { return Bent<SimDevice>(device, mutation); });
}

// The straight trip with one line replaced by others.
Text replaced(const std::string& line, const Text& by) {
  Text result;
  for (const std::string& other : bent_trip(std::nullopt)) {
    if (other != line) {
      result.push_back(other);
    } else {
      result.insert(result.end(), by.begin(), by.end());
    }
  }
  return result;
}

TEST(Bent, WithoutAMutationChangesNothing) {
  const Text straight = {"produced 0 e0",     "offload after producer 1 e0",
                         "host allocate",     "offload 1",
                         "offloaded 1 e1",    "abandon 1",
                         "reload allocate 0", "reload after offload 2 e1",
                         "reload 2",          "reloaded 2 e2",
                         "consume 0 e2",      "node done 0 e3",
                         "host return 2",     "host return free"};
  EXPECT_EQ(bent_trip(std::nullopt), straight);
}

TEST(Bent, ADroppedCallIsNotMade) {
  EXPECT_EQ(bent_trip({{Step::kConsume, Bend::kDrop}}), replaced("consume 0 e2", {}));
  EXPECT_EQ(bent_trip({{Step::kReload, Bend::kDrop}}), replaced("reload 2", {}));
  EXPECT_EQ(bent_trip({{Step::kOffload, Bend::kDrop}}), replaced("offload 1", {}));
  EXPECT_EQ(bent_trip({{Step::kAbandon, Bend::kDrop}}), replaced("abandon 1", {}));
  EXPECT_EQ(bent_trip({{Step::kHostReturn, Bend::kDrop}}), replaced("host return 2", {}));
}

TEST(Bent, ADroppedRecordGivesAnEventNeverRecorded) {
  test::World world;
  Bent<SimDevice> device(world.device(), Mutation{Step::kReloaded, Bend::kDrop});
  EXPECT_EQ(device.record(Step::kReloaded, world.stream(0)), sim::EventHandle());
  EXPECT_NE(device.record(Step::kOffloaded, world.stream(0)), sim::EventHandle());
}

TEST(Bent, AnotherStreamIsALaneForComputeAndTheOtherLaneForALane) {
  EXPECT_EQ(bent_trip({{Step::kConsume, Bend::kOtherStream}}),
            replaced("consume 0 e2", {"consume 1 e2"}));
  EXPECT_EQ(bent_trip({{Step::kOffload, Bend::kOtherStream}}),
            replaced("offload 1", {"offload 2"}));
  EXPECT_EQ(bent_trip({{Step::kReload, Bend::kOtherStream}}), replaced("reload 2", {"reload 1"}));
  EXPECT_EQ(bent_trip({{Step::kReloaded, Bend::kOtherStream}}), [] {
    Text text = replaced("reloaded 2 e2", {"reloaded 1 e2"});
    text[12] = "host return 1";  // the event's stream
    return text;
  }());
  EXPECT_EQ(bent_trip({{Step::kAbandon, Bend::kOtherStream}}),
            replaced("abandon 1", {"abandon 2"}));
  EXPECT_EQ(bent_trip({{Step::kReloadAllocate, Bend::kOtherStream}}),
            replaced("reload allocate 0", {"reload allocate 1"}));
}

TEST(Bent, ADelayedCallComesAfterTheNextRecordOrCopy) {
  Text late = replaced("offload after producer 1 e0", {});
  late.insert(late.begin() + 3, "offload after producer 1 e0");  // after `offload`
  EXPECT_EQ(bent_trip({{Step::kOffloadAfterProducer, Bend::kDelay}}), late);
  late = replaced("reload 2", {});
  late.insert(late.begin() + 9, "reload 2");  // after `reloaded`
  EXPECT_EQ(bent_trip({{Step::kReload, Bend::kDelay}}), late);
}

TEST(Bent, ADelayedCopyIsMadeBeforeItsHostBytesGoBack) {
  test::Lines lines;
  test::World world;
  world.machine().add_consumer(&lines);
  Bent<SimDevice> device(world.device(), Mutation{Step::kReload, Bend::kDelay});
  const sim::Tensor x = world.make(4096);
  auto host = device.allocate_host(Step::kHostAllocate, 4096, HostMemory::kPinned);
  device.reload(Step::kReload, host, x->storage, world.stream(0));
  device.release_host(Step::kHostReturn, std::move(host), {});
  EXPECT_EQ(lines.lines, (Text{"host allocate", "reload 0", "host return free"}));
}

TEST(Bent, AStaleRecordIsTheOneBeforeOnItsStream) {
  test::World world;
  Bent<SimDevice> device(world.device(), Mutation{Step::kReloaded, Bend::kStale});
  const StreamId back = device.lane(Lane::kHostToDevice);
  EXPECT_EQ(device.record(Step::kReloaded, back), sim::EventHandle());
  const auto other = device.record(Step::kNodeDone, back);
  device.record(Step::kNodeDone, world.stream(0));
  EXPECT_EQ(device.record(Step::kReloaded, back), other);
}

TEST(Bent, AStaleWaitIsForTheEventBefore) {
  test::Lines lines;
  test::World world;
  world.machine().add_consumer(&lines);
  Bent<SimDevice> device(world.device(), Mutation{Step::kConsume, Bend::kStale});
  const auto first = device.record(Step::kReloaded, world.stream(0));
  const auto second = device.record(Step::kReloaded, world.stream(0));
  lines.lines.clear();
  device.wait(Step::kConsume, world.stream(0), first);
  EXPECT_EQ(lines.lines, Text{}) << "there is none before the first";
  device.wait(Step::kConsume, world.stream(0), second);
  EXPECT_EQ(lines.lines, Text{"consume 0 e0"});
}

// Every cell of the table, and no other.
TEST(Mutations, ApplyByTheKindOfTheirStep) {
  using enum Bend;
  const auto bends = [](Step step) {
    std::set<Bend> result;
    for (const Bend bend : {kDrop, kOtherStream, kDelay, kStale}) {
      if (applies({step, bend})) result.insert(bend);
    }
    return result;
  };
  for (std::size_t i = 0; i < kSteps; ++i) {
    const Step step = static_cast<Step>(i);
    std::set<Bend> expected;
    switch (info(step).kind) {
      case StepKind::kNone:
        expected = {kStale};
        break;
      case StepKind::kRecord:
        expected = {kDrop, kOtherStream, kStale};
        break;
      case StepKind::kWait:
        expected = {kDrop, kOtherStream, kDelay, kStale};
        break;
      case StepKind::kCopy:
        expected = {kDrop, kOtherStream, kDelay};
        if (step == Step::kReceive) expected = {kOtherStream};
        break;
      case StepKind::kUse:
        expected = {kDrop, kOtherStream};
        break;
      case StepKind::kMemory:
        if (step == Step::kHostReturn) expected = {kDrop};
        if (step == Step::kReloadAllocate || step == Step::kBringAllocate) {
          expected = {kOtherStream};
        }
        break;
    }
    EXPECT_EQ(bends(step), expected) << name(step);
  }
}

// A mutation that applies is seen in the operations, where the trip takes its step.
TEST(Mutations, EachChangesTheOperations) {
  for (const Step step :
       {Step::kProduced, Step::kOffloadAfterProducer, Step::kOffload, Step::kOffloaded,
        Step::kAbandon, Step::kReloadAllocate, Step::kReloadAfterOffload, Step::kReload,
        Step::kReloaded, Step::kConsume, Step::kHostReturn}) {
    for (std::size_t bend = 0; bend < kBendNames.size(); ++bend) {
      const Mutation mutation{step, static_cast<Bend>(bend)};
      if (!applies(mutation)) continue;
      EXPECT_NE(bent_trip(mutation), bent_trip(std::nullopt))
          << name(step) << ": " << name(mutation.bend);
    }
  }
}

}  // namespace
}  // namespace ferry
