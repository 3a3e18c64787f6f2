#include "verify/oracles/asked_nodes.h"

#include <gtest/gtest.h>

#include <array>

#include "sim/gpu/machine.h"

namespace ferry::verify {
namespace {

TEST(AskedNodes, AreKnownByTheirShapesAndStreams) {
  sim::Machine machine({});
  AskedNodes nodes(machine);
  const std::array<sim::Value, 1> one;  // a phony
  machine.set_current_stream(machine.compute_stream(0));
  nodes.asked(one, one, true);
  nodes.asked(one, one, true);
  machine.set_current_stream(machine.transfer_stream(0, 1));
  nodes.asked(one, one, true);
  const AskedNode computes{0, true, 0, 1, 0, 1}, arrives{0, false, 0, 1, 0, 1};
  EXPECT_EQ(difference(nodes.counts(), {{computes, 2}, {arrives, 1}}), "");
  EXPECT_EQ(difference(nodes.counts(), {{computes, 1}, {arrives, 1}}),
            "2 nodes from 0 tensors and 1 phonies to 0 tensors and 1 phonies on device 0's "
            "compute stream, not 1");
  EXPECT_EQ(difference(nodes.counts(), {{computes, 2}}),
            "1 nodes from 0 tensors and 1 phonies to 0 tensors and 1 phonies on device 0's "
            "arrival streams, not 0");
}

TEST(AskedNodes, WhereNoGradientCanComeByNoneIsNeeded) {
  sim::Machine machine({});
  AskedNodes nodes(machine);
  EXPECT_EQ(nodes.in_vain(), 0);
  nodes.asked({}, {}, false);
  EXPECT_EQ(nodes.in_vain(), 1);
  EXPECT_EQ(nodes.counts(), AskedNodeCounts());
}

}  // namespace
}  // namespace ferry::verify
