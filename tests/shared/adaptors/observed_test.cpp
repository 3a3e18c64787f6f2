#include "shared/adaptors/observed.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/shared/adaptors/round_trip.h"
#include "tests/sim/support/pipeline_rig.h"

namespace ferry {
namespace {

using sim::SimDevice;
using test::round_trip;

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

TEST(Logged, SeesACopyToAnotherDevice) {
  test::PipelineRig rig(2);
  std::vector<DeviceCall> calls;
  const auto log =
      std::make_shared<CallLog>([&](const DeviceCall& call) { calls.push_back(call); });
  Logged<SimDevice> source(rig.place(0).device, log);
  Logged<SimDevice> target(rig.place(1).device, log);
  source.transfer(Step::kReceive, rig.fresh(), target, rig.place(1).arrivals);
  EXPECT_EQ(calls, (std::vector<DeviceCall>{{Step::kReceive, StepKind::kCopy, 0}}))
      << "its bytes are not known before it is made";
}

TEST(DeviceCall, IsTheProgramsOwnUnlessItSaysOtherwise) {
  EXPECT_EQ(DeviceCall(), (DeviceCall{Step::kUser, StepKind::kNone, 0}));
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

}  // namespace
}  // namespace ferry
