// Copies between devices: ordered, and neither end is given out again too early.
#include "shared/transfer/transfer.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <vector>

#include "shared/adaptors/bent.h"
#include "tests/sim/support/pipeline_rig.h"

namespace ferry {
namespace {

using test::PipelineRig;
using Device = Bent<sim::SimDevice>;

class TransferTest : public testing::Test {
 protected:
  Place<Device> place(std::uint32_t device, std::optional<Mutation> mutation = {}) {
    const Place<sim::SimDevice> of = rig_.place(device);
    return {device, Device(of.device, mutation), of.compute, of.arrivals};
  }
  // A tensor's last 256 of 1024 bytes.
  sim::Tensor shifted_view() {
    const sim::Tensor base = rig_.fresh();
    const Layout layout{DType::kF32, {64}, {1}, 192};
    return sim::make_tensor(base->storage,
                            {std::make_shared<sim::Window>(sim::Window{layout, {768, 1024}}), 0},
                            base->version);
  }
  PipelineRig rig_{2};
};

TEST_F(TransferTest, StaysWhereItIsOnOneDevice) {
  const sim::Tensor x = rig_.fresh();
  Transfer<Device> transfer(place(1), place(1));
  transfer.send();
  const sim::Tensor same = transfer.receive(x);
  transfer.take(std::array{same});
  EXPECT_EQ(same->storage, x->storage);
  EXPECT_NE(same, x);
}

TEST_F(TransferTest, OnlyTheBytesOfAViewTravel) {
  const sim::Tensor x = shifted_view();
  Transfer<Device> transfer(place(0), place(1));
  transfer.send();
  const sim::Tensor copy = transfer.receive(x);
  transfer.take(std::array{copy});
  EXPECT_EQ(copy->storage->bytes, 256);
  EXPECT_EQ(copy->storage->device, 1u);
  EXPECT_EQ(copy->layout.window->layout.shape, x->layout.window->layout.shape);
}

// pytorch#27366: what is in use is the view's whole storage. Dropped right after the copy was
// issued, no byte of it is given out again before the copy is done.
TEST_F(TransferTest, AShiftedViewIsInUseAsAWhole) {
  const auto hazards = [this](std::optional<Mutation> mutation) {
    {
      const sim::Tensor x = shifted_view();
      Transfer<Device> transfer(place(0, mutation), place(1));
      transfer.send();
      const sim::Tensor copy = transfer.receive(x);
      transfer.take(std::array{copy});
    }
    std::vector<sim::Tensor> next;
    for (int i = 0; i < 4; ++i) next.push_back(rig_.fresh());  // written at once
    return rig_.hazards().size();
  };
  EXPECT_EQ(hazards({}), 0u) << rig_.hazards().front();
  EXPECT_GT(hazards(Mutation{Step::kSendInUse, Bend::kDrop}), 0u);
}

}  // namespace
}  // namespace ferry
