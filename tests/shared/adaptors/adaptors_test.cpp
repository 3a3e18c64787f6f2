#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "shared/adaptors/bent.h"
#include "shared/adaptors/observed.h"
#include "tests/sim/support/world.h"

namespace ferry {
namespace {

using sim::SimDevice;

// One parcel's way out and back, as the core makes it: streams 0 (compute), 1 and 2 (the lanes).
template <class D>
void round_trip(test::World& world, D device) {
  constexpr std::int64_t kBytes = 4096;
  const auto compute = device.current_stream();
  const auto out = device.lane(Lane::kDeviceToHost);
  const auto back = device.lane(Lane::kHostToDevice);
  const sim::Tensor x = world.make(2 * kBytes);
  const auto produced = device.record(Step::kProduced, compute);
  device.wait(Step::kOffloadAfterProducer, out, produced);
  auto host = device.allocate_host(Step::kHostAllocate, kBytes, HostMemory::kPinned);
  device.offload(Step::kOffload, device.storage(x), 0, host, out);
  const auto offloaded = device.record(Step::kOffloaded, out);
  device.record_use(Step::kAbandon, device.storage(x), out);
  const auto target = device.allocate(Step::kReloadAllocate, kBytes, compute);
  device.wait(Step::kReloadAfterOffload, back, offloaded);
  device.reload(Step::kReload, host, target, back);
  const auto reloaded = device.record(Step::kReloaded, back);
  device.wait(Step::kConsume, compute, reloaded);
  device.record(Step::kNodeDone, compute);
  device.release_host(Step::kHostReturn, std::move(host), {&reloaded, 1});
}

// --- Observed

TEST(Logged, SeesEveryCallInOrderWithStepAndBytes) {
  test::World world;
  std::vector<DeviceCall> calls;
  const auto log =
      std::make_shared<CallLog>([&](const DeviceCall& call) { calls.push_back(call); });
  round_trip(world, Logged<SimDevice>(world.device(), log));
  const std::vector<DeviceCall> expected = {{Step::kProduced, StepKind::kRecord, 0},
                                            {Step::kOffloadAfterProducer, StepKind::kWait, 0},
                                            {Step::kHostAllocate, StepKind::kMemory, 4096},
                                            {Step::kOffload, StepKind::kCopy, 8192},
                                            {Step::kOffloaded, StepKind::kRecord, 0},
                                            {Step::kAbandon, StepKind::kUse, 0},
                                            {Step::kReloadAllocate, StepKind::kMemory, 4096},
                                            {Step::kReloadAfterOffload, StepKind::kWait, 0},
                                            {Step::kReload, StepKind::kCopy, 4096},
                                            {Step::kReloaded, StepKind::kRecord, 0},
                                            {Step::kConsume, StepKind::kWait, 0},
                                            {Step::kNodeDone, StepKind::kRecord, 0}};
  EXPECT_EQ(calls, expected);
}

TEST(Counted, SumsCallsAndBytesByStep) {
  test::World world;
  const auto counts = std::make_shared<CallCount>();
  const Counted<SimDevice> device(world.device(), counts);
  for (int i = 0; i < 3; ++i) round_trip(world, device);
  EXPECT_EQ(counts->of(Step::kReload).calls, 3);
  EXPECT_EQ(counts->of(Step::kReload).bytes, 3 * 4096);
  EXPECT_EQ(counts->of(Step::kConsume).calls, 3);
  EXPECT_EQ(counts->of(Step::kConsume).bytes, 0);
  EXPECT_EQ(counts->of(Step::kEvict).calls, 0);
}

TEST(Faulty, FailsTheNthCallOfAStepOnce) {
  test::World world;
  const auto fault = std::make_shared<FaultPoint>(Step::kReload, 2);
  const Faulty<SimDevice> device(world.device(), fault);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(fault->fired(), i > 2);
    if (i == 2) {
      EXPECT_THROW(round_trip(world, device), InjectedFault);
    } else {
      EXPECT_NO_THROW(round_trip(world, device));
    }
  }
  EXPECT_EQ(world.copies(Step::kReload), 4) << "the copy that failed was not enqueued";
}

TEST(Faulty, NamesItsStep) {
  EXPECT_STREQ(InjectedFault(Step::kReloadAfterOffload).what(),
               "injected fault at reload after offload");
  EXPECT_EQ(InjectedFault(Step::kReload).step(), Step::kReload);
}

// --- Bent

// The core's operations as text: "reloaded 2 e3".
class Lines final : public StreamOpConsumer {
 public:
  void operator()(const StreamOp& op) override {
    if (op.step == Step::kUser) return;
    std::string text(name(op.step));
    text += op.kind == StreamOpKind::kFree ? " free" : "";
    if (static_cast<std::uint32_t>(op.stream) < 100) {
      text += " " + std::to_string(static_cast<std::uint32_t>(op.stream));
    }
    if (op.kind == StreamOpKind::kRecord || op.kind == StreamOpKind::kWait) {
      text += " e" + std::to_string(static_cast<std::uint32_t>(op.event));
    }
    lines.push_back(text);
  }
  std::vector<std::string> lines;
};

using Text = std::vector<std::string>;

Text bent_trip(std::optional<Mutation> mutation) {
  Lines lines;
  test::World world;
  world.machine().add_consumer(&lines);
  round_trip(world, Bent<SimDevice>(world.device(), mutation));
  return lines.lines;
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
  Lines lines;
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
  Lines lines;
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
        if (step == Step::kReloadAllocate) expected = {kOtherStream};
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
