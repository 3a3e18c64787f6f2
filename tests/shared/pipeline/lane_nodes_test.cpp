// The nodes between two stages: which values go through them, on which streams they live, and what
// they do in backward.
#include "shared/pipeline/lane_nodes.h"

#include <gtest/gtest.h>

#include "tests/shared/pipeline/asked_autograd.h"
#include "tests/shared/pipeline/steps_taken.h"

namespace ferry {
namespace {

using sim::Value;
using test::AskedAutograd;
using test::PipelineRig;
using Values = std::vector<Value>;
using Flags = std::vector<bool>;

class LaneNodes : public testing::Test {
 protected:
  // From the first device to the second.
  void cross(Values& values) {
    out_node(autograd_, transfer_, values);
    copy_node(autograd_, transfer_, values);
    in_node(autograd_, transfer_, values);
  }
  Value constant() { return {rig_.fresh(), {}}; }
  Flags require_grad(const Values& values) {
    Flags which;
    for (const Value& value : values) which.push_back(autograd_.requires_grad(value));
    return which;
  }
  // Of what the second device computes with it.
  void backward(const Value& value) {
    const auto second = transfer_.to();
    const sim::SimDevice::StreamScope on(second.device, second.compute);
    rig_.backward({rig_.op({value})});
  }
  Value gradient(const Value& leaf) { return rig_.autograd().gradient(leaf); }
  const std::vector<test::Asked::Node>& nodes() { return autograd_.asked().nodes; }

  test::StepsTaken steps_;
  PipelineRig rig_{2};
  AskedAutograd autograd_{rig_};
  Transfer<sim::SimDevice> transfer_{rig_.place(0), rig_.place(1)};
};

TEST_F(LaneNodes, EveryValueThatRequiresGradGoesThroughThem) {
  const Value x = rig_.leaf();
  const Value y = rig_.leaf();
  Values values = {rig_.op({x}), constant(), rig_.op({y})};
  cross(values);
  ASSERT_EQ(nodes().size(), 3u);
  for (const auto& node : nodes()) EXPECT_EQ(node.inputs, 2u);
  EXPECT_EQ(require_grad(values), (Flags{true, false, true}));
  for (const Value& value : values) EXPECT_EQ(value.tensor->storage->device, 1u);
  backward(values[2]);
  EXPECT_FALSE(gradient(x).tensor);
  ASSERT_TRUE(gradient(y).tensor);
  EXPECT_EQ(gradient(y).tensor->storage->device, 0u);
  backward(values[0]);
  EXPECT_TRUE(gradient(x).tensor);
  EXPECT_TRUE(rig_.hazards().empty()) << rig_.hazards().front();
}

TEST_F(LaneNodes, ValuesThatNeedNoGradientPassThemBy) {
  Values values = {constant(), Value(), constant()};
  cross(values);
  EXPECT_TRUE(nodes().empty());
  EXPECT_EQ(require_grad(values), (Flags{false, false, false}));
  EXPECT_EQ(values[0].tensor->storage->device, 1u);
  EXPECT_FALSE(values[1].tensor);
  EXPECT_EQ(values[2].tensor->storage->device, 1u);
}

TEST_F(LaneNodes, WithoutGradModeThereAreNoNodesAndNoGraph) {
  const Values here = {rig_.op({rig_.leaf()})};
  Values there = here;
  cross(there);
  const std::size_t before = nodes().size();
  const sim::SimAutograd::GradModeScope no_grad(rig_.autograd(), false);
  const auto pass = [&](auto* node, Values values) {
    node(autograd_, transfer_, values);
    EXPECT_EQ(nodes().size(), before);
    EXPECT_EQ(require_grad(values), (Flags{false}));
  };
  pass(out_node<sim::SimDevice, AskedAutograd>, here);
  pass(copy_node<sim::SimDevice, AskedAutograd>, here);
  pass(in_node<sim::SimDevice, AskedAutograd>, there);
}

// So that autograd's own order between nodes makes nothing wait that computes.
TEST_F(LaneNodes, TheyLiveOnStreamsOfArrivalButForTheLast) {
  Values values = {rig_.op({rig_.leaf()})};
  cross(values);
  ASSERT_EQ(nodes().size(), 3u);
  EXPECT_EQ(nodes()[0].stream, transfer_.from().arrivals);
  EXPECT_EQ(nodes()[1].stream, transfer_.to().arrivals);
  EXPECT_EQ(nodes()[2].stream, transfer_.to().compute);
  EXPECT_EQ(rig_.machine().current_stream(), rig_.machine().compute_stream(0));
}

TEST_F(LaneNodes, InBackwardTheFirstStageWaitsForItsGradient) {
  const Value x = rig_.leaf();
  Values values = {rig_.op({x})};
  cross(values);
  rig_.machine().add_consumer(&steps_);
  backward(values[0]);
  EXPECT_EQ(steps_.names(),
            (std::vector<std::string>{"sent", "receive after sent", "send in use", "receive",
                                      "received", "take received", "received in use"}));
  EXPECT_TRUE(steps_.has(Step::kTakeReceived, transfer_.from().compute));
  EXPECT_TRUE(steps_.has(Step::kReceivedInUse, transfer_.from().compute));
}

}  // namespace
}  // namespace ferry
