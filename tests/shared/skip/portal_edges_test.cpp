// Portals at their edges: nothing stashed, no gradient wanted, no grad mode, and what is left where
// nobody takes it.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/shared/skip/strict_portals.h"

namespace ferry {
namespace {

class PortalEdges : public test::StrictPortals {
 protected:
  static std::string message(const std::function<void()>& call) {
    try {
      call();
    } catch (const SkipError& error) {
      return error.what();
    }
    return "none";
  }
};

TEST_F(PortalEdges, BeforeAStashThereIsNothingToTakeOrCopy) {
  const auto hidden = portal();
  Value lane = rig_.leaf();
  EXPECT_EQ(message([&] { hidden->take(); }), "tensor in portal has been removed");
  EXPECT_EQ(message([&] { cross(*hidden, lane); }), "tensor in portal has been removed");
}

TEST_F(PortalEdges, WhatWasPoppedIsNotCopied) {
  const auto hidden = portal();
  Value lane = rig_.leaf();
  hidden->blue(rig_.leaf(), false);
  hidden->take();
  EXPECT_EQ(message([&] { cross(*hidden, lane); }), "tensor in portal has been removed");
}

TEST_F(PortalEdges, NoneReplacesWhatWasStashedBeforeAndIsNotCopied) {
  const auto hidden = portal();
  const Value x = rig_.leaf();
  Value lane = rig_.leaf();
  hidden->blue(x, false);
  hidden->blue(Value(), false);
  EXPECT_TRUE(hidden->empty());
  const std::int64_t before = rig_.machine().live_storages();
  cross(*hidden, lane);
  EXPECT_EQ(rig_.machine().live_storages(), before);
  EXPECT_FALSE(hidden->take());
}

TEST_F(PortalEdges, ItIsNotEmptyBetweenItsStashAndItsPop) {
  const auto hidden = portal();
  EXPECT_TRUE(hidden->empty());
  hidden->blue(rig_.leaf(), false);
  EXPECT_FALSE(hidden->empty());
  hidden->take();
  EXPECT_TRUE(hidden->empty());
}

// The stashing stage is no part of this backward, so nobody takes what its pop got.
TEST_F(PortalEdges, AGradientThatNobodyTookIsStillThere) {
  const auto hidden = portal();
  hidden->blue(rig_.leaf(), false);
  const Value popped = hidden->orange(*hidden->take(), phony());
  EXPECT_TRUE(hidden->empty());
  rig_.backward({rig_.op({popped})});
  EXPECT_FALSE(hidden->empty());
}

// What a checkpointed stage stashes may have a graph, as far as its first run knows.
TEST_F(PortalEdges, AGradientThatNobodyWillTakeGoesWhenTheStashingStageRunsAgain) {
  const auto hidden = portal();
  {
    const NoGrad off(rig_.autograd(), false);
    hidden->blue(without_gradient(), false);
  }
  const Value popped = hidden->orange(*hidden->take(), phony());
  rig_.backward({rig_.op({popped})});
  EXPECT_FALSE(hidden->empty());
  EXPECT_FALSE(requires_grad(hidden->blue(without_gradient(), true)));
  EXPECT_TRUE(hidden->empty());
}

TEST_F(PortalEdges, AStashWithoutAGradientAsksForNoEdge) {
  EXPECT_FALSE(requires_grad(portal()->blue(without_gradient(), false)));
  EXPECT_FALSE(requires_grad(portal()->blue(Value(), false)));
  const NoGrad off(rig_.autograd(), false);
  EXPECT_FALSE(requires_grad(portal()->blue(rig_.leaf(), false)));
  EXPECT_EQ(asked_->nodes, 0);
  EXPECT_EQ(asked_->phonies, 0);
}

TEST_F(PortalEdges, WithoutAnOrderACopyAsksForNoEdge) {
  const auto hidden = portal();
  hidden->blue(without_gradient(), false);
  Value lane = without_gradient();
  cross(*hidden, lane);
  EXPECT_FALSE(requires_grad(lane));
  EXPECT_EQ(hidden->take().value()->storage->device, 1u) << "it is copied all the same";
  EXPECT_EQ(asked_->nodes, 0);
  EXPECT_EQ(asked_->phonies, 0);
}

TEST_F(PortalEdges, WithoutGradModeACopyLeavesTheLaneAsItIs) {
  const auto hidden = portal();
  const Value before = rig_.leaf();
  Value lane = before;
  const NoGrad off(rig_.autograd(), false);
  hidden->blue(rig_.leaf(), false);
  cross(*hidden, lane);
  EXPECT_EQ(lane.edge.node, before.edge.node);
  EXPECT_EQ(asked_->nodes, 0);
}

// So the gradient moves on the stream of arrival, and no kernel waits for it.
TEST_F(PortalEdges, ACopyGoesBackOnTheStreamOfArrival) {
  const auto hidden = portal();
  hidden->blue(rig_.leaf(), false);
  Value lane = rig_.leaf();
  const StreamId current = rig_.machine().current_stream();
  cross(*hidden, lane);
  EXPECT_EQ(rig_.machine().current_stream(), current);
  ASSERT_EQ(lane.edge.node->next.size(), 2u) << "the forked lane, and the copy's phony";
  EXPECT_EQ(lane.edge.node->stream, rig_.place(1).arrivals);
  for (const sim::Edge& edge : lane.edge.node->next) {
    EXPECT_EQ(edge.node->stream, rig_.place(1).arrivals);
  }
}

TEST_F(PortalEdges, AGradientThatCameBackHasNoGraph) {
  std::vector<Value> arrived;
  const Value x = autograd()
                      .node(std::array{rig_.leaf()}, {without_gradient()},
                            [&](std::vector<Value> gradients) {
                              arrived = gradients;
                              return gradients;
                            })
                      .front();
  const auto hidden = portal();
  Value lane = rig_.leaf();
  join(autograd(), lane, hidden->blue(x, false));
  cross(*hidden, lane);
  const sim::SimDevice::StreamScope on(rig_.place(1).device, rig_.place(1).compute);
  const Value order = fork(autograd(), lane);
  rig_.backward({rig_.op({hidden->orange(*hidden->take(), order), lane})});
  ASSERT_EQ(arrived.size(), 1u);
  ASSERT_TRUE(arrived[0].tensor);
  EXPECT_EQ(arrived[0].tensor->storage->device, 0u);
  EXPECT_FALSE(requires_grad(arrived[0]));
}

TEST_F(PortalEdges, AStashWithoutAGradientIsPoppedWithoutOne) {
  const auto hidden = portal();
  hidden->blue(without_gradient(), false);
  const Value order = phony();
  *asked_ = {};
  const Value popped = hidden->orange(*hidden->take(), order);
  EXPECT_TRUE(popped.tensor);
  EXPECT_FALSE(requires_grad(popped));
  EXPECT_EQ(asked_->nodes, 0);
}

TEST_F(PortalEdges, WithoutAnOrderAPopAsksForNoEdge) {
  const auto hidden = portal();
  hidden->blue(rig_.leaf(), false);
  const Value popped = hidden->orange(*hidden->take(), Value());
  *asked_ = {};
  EXPECT_FALSE(requires_grad(hidden->orange(popped.tensor, Value())));
  EXPECT_EQ(asked_->nodes, 0);
}

TEST_F(PortalEdges, WithoutGradModeAPopAsksForNoEdge) {
  const auto hidden = portal();
  hidden->blue(rig_.leaf(), false);
  const Value order = phony();
  *asked_ = {};
  const NoGrad off(rig_.autograd(), false);
  EXPECT_FALSE(requires_grad(hidden->orange(*hidden->take(), order)));
  EXPECT_EQ(asked_->nodes, 0);
}

}  // namespace
}  // namespace ferry
