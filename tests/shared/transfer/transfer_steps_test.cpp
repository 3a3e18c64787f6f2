// The steps of a copy between devices: each is taken once, and none between stages on one device.
#include "shared/transfer/transfer.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <memory>
#include <set>
#include <string_view>

#include "shared/adaptors/observed.h"
#include "tests/sim/support/pipeline_rig.h"

namespace ferry {
namespace {

using Device = Counted<sim::SimDevice>;

class TransferSteps : public testing::Test {
 protected:
  Place<Device> place(std::uint32_t device) {
    const Place<sim::SimDevice> of = rig_.place(device);
    return {of.number, Device(of.device, counts_), of.compute, of.arrivals};
  }
  void travel(std::uint32_t from, std::uint32_t to) {
    Transfer<Device> transfer(place(from), place(to));
    transfer.send();
    const sim::Tensor arrived = transfer.receive(rig_.fresh());
    transfer.take(std::array{arrived});
  }
  // The steps that were taken `times` times.
  std::set<std::string_view> taken(std::int64_t times) const {
    std::set<std::string_view> names;
    for (std::size_t i = 0; i < kSteps; ++i) {
      const Step step = static_cast<Step>(i);
      if (counts_->of(step).calls == times) names.insert(name(step));
    }
    return names;
  }

  test::PipelineRig rig_{2};
  const std::shared_ptr<CallCount> counts_ = std::make_shared<CallCount>();
};

TEST_F(TransferSteps, BetweenDevicesEachIsTakenOnce) {
  travel(0, 1);
  const std::set<std::string_view> all = {"sent",           "receive after sent", "receive",
                                          "send in use",    "received",           "take received",
                                          "received in use"};
  EXPECT_EQ(taken(1), all);
  EXPECT_EQ(taken(0).size(), kSteps - all.size());
}

TEST_F(TransferSteps, OnOneDeviceNothingIsCopiedAndNobodyWaits) {
  travel(1, 1);
  EXPECT_EQ(taken(0).size(), kSteps);
}

TEST_F(TransferSteps, APlaceIsTheFirstDevicesUnlessItSaysOtherwise) {
  const Place<sim::SimDevice> first = rig_.place(0);
  const Place<sim::SimDevice> place{
      .device = first.device, .compute = first.compute, .arrivals = first.arrivals};
  EXPECT_EQ(place.number, 0u);
}

}  // namespace
}  // namespace ferry
