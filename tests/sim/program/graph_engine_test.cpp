#include "sim/program/graph_engine.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/sim/program/graph_engine_rig.h"

namespace ferry::sim {
namespace {

using test::Names;
using test::NodeRef;
using GraphEngineTest = test::GraphEngineRig;

TEST_F(GraphEngineTest, OfTheReadyNodesTheOneMadeLastRunsFirst) {
  const NodeRef early = node("early", {});
  const NodeRef middle = node("middle", {});
  const NodeRef late = node("late", {});
  backward(node("root", {{early, 0}, {late, 0}, {middle, 0}}));
  EXPECT_EQ(ran, (Names{"root", "late", "middle", "early"}));
}

TEST_F(GraphEngineTest, ANodeRunsOnceWhenAllItsGradientsAreThere) {
  const NodeRef shared = node("shared", {});
  const NodeRef left = node("left", {{shared, 0}});
  const NodeRef deeper = node("deeper", {{shared, 0}});
  const NodeRef right = node("right", {{deeper, 0}});
  backward(node("root", {{left, 0}, {right, 0}}));
  EXPECT_EQ(ran, (Names{"root", "right", "deeper", "left", "shared"}));
}

TEST_F(GraphEngineTest, EdgesWithoutNodesAreSkippedAndMissingGradientsFlow) {
  const NodeRef last = node("last", {});
  bodies["root"] = [](std::vector<Value>) { return std::vector<Value>(2); };
  bodies["last"] = [](std::vector<Value> gradients) {
    EXPECT_EQ(gradients.at(0).tensor, nullptr);
    return std::vector<Value>{};
  };
  backward(node("root", {{}, {last, 0}}));
  EXPECT_EQ(ran, (Names{"root", "last"}));
}

TEST_F(GraphEngineTest, SeveralRootsShareATaskAndMayBeOneNode) {
  const NodeRef last = node("last", {});
  const NodeRef a = node("a", {{last, 0}});
  const NodeRef b = node("b", {{last, 0}});
  const std::vector<GraphEngine::Root> roots = {
      {{a, 0}, tensor()}, {{b, 0}, tensor()}, {{b, 0}, tensor()}};
  engine.run(roots, false, false);
  EXPECT_EQ(ran, (Names{"b", "a", "last"}));
  EXPECT_EQ(log.kernels(),
            (Names{"add", "add_"}));  // b's two, whose first the caller holds; last's
}

// PyTorch's views keep their bases, so that nobody is alone with the storage of one. The sum is no
// view. Seen of PyTorch 2.11 with three linear layers without a bias on one input of three
// dimensions: add, add_.
TEST_F(GraphEngineTest, AGradientThatIsAViewIsAddedToOutOfPlace) {
  const NodeRef last = node("last", {});
  for (const char* name : {"a", "b", "c"}) {
    bodies[name] = [this](std::vector<Value>) {
      const Tensor made = tensor();
      made->is_view = true;
      return std::vector<Value>{{made, {}}};
    };
  }
  const NodeRef a = node("a", {{last, 0}});
  const NodeRef b = node("b", {{last, 0}});
  const NodeRef c = node("c", {{last, 0}});
  backward(node("root", {{a, 0}, {b, 0}, {c, 0}}));
  EXPECT_EQ(log.kernels(), (Names{"add", "add_"}));
}

TEST_F(GraphEngineTest, WithoutRetainGraphASecondBackwardIsPyTorchsError) {
  const NodeRef last = node("last", {});
  const NodeRef root = node("root", {{last, 0}});
  keep(root, tensor());
  backward(root);
  EXPECT_TRUE(root->saved.empty());
  try {
    backward(root);
    ADD_FAILURE() << "expected an error";
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(std::string(error.what()),
              "Trying to backward through the graph a second time (or directly access saved "
              "tensors after they have already been freed).");
  }
  EXPECT_EQ(ran, (Names{"root", "last"}));
}

TEST_F(GraphEngineTest, ANodeThatSavedNothingRunsAgain) {
  const NodeRef root = node("root", {});
  backward(root);
  backward(root);
  EXPECT_EQ(ran, (Names{"root", "root"}));
}

TEST_F(GraphEngineTest, RetainGraphAndCreateGraphKeepWhatIsSaved) {
  const NodeRef root = node("root", {});
  keep(root, tensor());
  backward(root, true);
  backward(root, false, true);
  EXPECT_EQ(root->saved.size(), 1u);
  backward(root);
  EXPECT_TRUE(root->saved.empty());
}

TEST_F(GraphEngineTest, ATaskInANodeHasItsOwnIdAndLeavesTheOuterOneAsItWas) {
  EXPECT_EQ(engine.graph_task(), GraphTaskId::kNone);
  EXPECT_EQ(engine.node(), NodeId::kNone);
  const NodeRef inner = node("inner", {});
  std::vector<GraphTaskId> tasks;
  std::vector<NodeId> nodes;
  const auto note = [&] {
    tasks.push_back(engine.graph_task());
    nodes.push_back(engine.node());
  };
  bodies["inner"] = [&](std::vector<Value>) {
    note();
    return std::vector<Value>{};
  };
  bodies["outer"] = [&](std::vector<Value>) {
    note();
    backward(inner, true);
    note();
    return std::vector<Value>{};
  };
  const NodeRef outer = node("outer", {});
  backward(outer, true);
  backward(outer, true);
  ASSERT_EQ(tasks.size(), 6u);
  EXPECT_EQ(tasks[0], tasks[2]);
  EXPECT_EQ(nodes[0], nodes[2]);
  const std::set<GraphTaskId> unlike = {tasks[0], tasks[1], tasks[3], tasks[4], GraphTaskId::kNone};
  EXPECT_EQ(unlike.size(), 5u);
  EXPECT_NE(nodes[0], nodes[1]);
  EXPECT_EQ(engine.graph_task(), GraphTaskId::kNone);
}

TEST_F(GraphEngineTest, AfterNodeAndAfterTaskRunOnceAndInThatOrder) {
  Names heard;
  const NodeRef last = node("last", {});
  bodies["root"] = [&](std::vector<Value>) {
    engine.after_node([&] { heard.push_back("node after " + std::to_string(ran.size())); });
    engine.after_task([&] { heard.push_back("task after " + std::to_string(ran.size())); });
    return std::vector<Value>(1);
  };
  const NodeRef root = node("root", {{last, 0}});
  backward(root, true);
  EXPECT_EQ(heard, (Names{"node after 1", "task after 2"}));
}

TEST_F(GraphEngineTest, AfterAFailureOnlyTheTasksEndIsHeardOf) {
  Names heard;
  const StreamId stream = machine.current_stream();
  const NodeRef last = node("last", {});
  bodies["root"] = [&](std::vector<Value>) -> std::vector<Value> {
    engine.after_node([&] { heard.emplace_back("node"); });
    engine.after_task([&] {
      heard.emplace_back("task");
      EXPECT_NE(engine.graph_task(), GraphTaskId::kNone);
    });
    throw std::runtime_error("boom");
  };
  EXPECT_THROW(backward(node("root", {{last, 0}}, 1)), std::runtime_error);
  EXPECT_EQ(heard, Names{"task"});
  EXPECT_EQ(ran, Names{"root"});
  EXPECT_EQ(engine.graph_task(), GraphTaskId::kNone);
  EXPECT_EQ(machine.current_stream(), stream);
  EXPECT_EQ(machine.live_storages(), 0);  // no gradient is held back
}

TEST_F(GraphEngineTest, AFailedInnerTaskEndsAndTheOuterOneGoesOn) {
  Names heard;
  const NodeRef inner = node("inner", {});
  bodies["inner"] = [&](std::vector<Value>) -> std::vector<Value> {
    engine.after_task([&] { heard.emplace_back("inner"); });
    throw std::runtime_error("boom");
  };
  bodies["outer"] = [&](std::vector<Value>) {
    engine.after_node([&] { heard.emplace_back("node"); });
    const NodeId before = engine.node();
    EXPECT_THROW(backward(inner), std::runtime_error);
    EXPECT_EQ(engine.node(), before);
    return std::vector<Value>{};
  };
  backward(node("outer", {}));
  EXPECT_EQ(heard, (Names{"inner", "node"}));
}

TEST_F(GraphEngineTest, AGradientThatCrossesStreamsIsOrderedAndRecordedAsInUse) {
  const NodeRef last = node("last", {}, 1);
  Range made;
  bodies["root"] = [&](std::vector<Value>) {
    std::vector<Value> results = {{tensor(), {}}};
    made = range_of(results[0].tensor);
    return results;
  };
  bodies["last"] = [&](std::vector<Value>) {
    EXPECT_EQ(machine.current_stream(), machine.compute_stream(1));
    return std::vector<Value>{};
  };
  backward(node("root", {{last, 0}}));
  const auto records = log.of(StreamOpKind::kRecord);
  const auto waits = log.of(StreamOpKind::kWait);
  const auto uses = log.of(StreamOpKind::kRecordUse);
  ASSERT_EQ(records.size(), 1u);
  ASSERT_EQ(waits.size(), 1u);
  ASSERT_EQ(uses.size(), 1u);
  EXPECT_EQ(records[0].stream, machine.compute_stream(0));
  EXPECT_EQ(waits[0].stream, machine.compute_stream(1));
  EXPECT_EQ(waits[0].event, records[0].event);
  EXPECT_EQ(uses[0].stream, machine.compute_stream(1));
  EXPECT_EQ(uses[0].range.address, made.address);
}

TEST_F(GraphEngineTest, TheCallersStreamWaitsForTheAccumulators) {
  const NodeRef w = leaf(0, 1);
  backward(node("root", {{w, 0}, {w, 0}}, 1));  // there, once for both, and back
  const auto waits = log.of(StreamOpKind::kWait);
  ASSERT_EQ(waits.size(), 2u);
  EXPECT_EQ(waits[0].stream, machine.compute_stream(1));
  EXPECT_EQ(waits[1].stream, machine.compute_stream(0));
  EXPECT_EQ(machine.current_stream(), machine.compute_stream(0));
}

TEST_F(GraphEngineTest, ALongGraphDiesWithoutRecursion) {
  NodeRef head = node("root", {});
  for (int i = 0; i < 200'000; ++i) head = node("link", {{head, 0}});
  head.reset();
}

}  // namespace
}  // namespace ferry::sim
