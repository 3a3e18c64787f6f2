// Each assertion of transfers is seen to fail: what crosses lies where it should.
#include <gtest/gtest.h>

#include <array>

#include "shared/transfer/transfer.h"
#include "tests/sim/support/pipeline_rig.h"

namespace ferry {
namespace {

// Copies nothing, and gives the source for the copy.
struct StuckDevice : sim::SimDevice {
  explicit StuckDevice(sim::SimDevice device) : sim::SimDevice(device) {}
  sim::Tensor transfer(Step, const sim::Tensor& tensor, StuckDevice&, StreamId) { return tensor; }
};

TEST(TransferInvariants, WhatCrossesLiesWhereItArrives) {
  test::PipelineRig rig(2);
  const auto place = [&rig](std::uint32_t number) {
    const Place<sim::SimDevice> of = rig.place(number);
    return Place<StuckDevice>{number, StuckDevice(of.device), of.compute, of.arrivals};
  };
  Transfer<StuckDevice> transfer(place(0), place(1));
  const sim::Tensor x = rig.fresh();
  EXPECT_DEATH(transfer.receive(x), "what is received lies on the device that receives");
  EXPECT_DEATH(transfer.take(std::array{x}), "what is taken has arrived");
}

}  // namespace
}  // namespace ferry
