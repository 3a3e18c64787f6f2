#include "sim/program/graph_engine.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "formats/layout.h"
#include "tests/sim/support/tiny.h"

namespace ferry::sim {
namespace {

using Names = std::vector<std::string>;
using NodeRef = std::shared_ptr<Node>;

// Nodes whose bodies make a fresh gradient for every input, unless a test says what they do.
class GraphEngineTest : public ::testing::Test, public NodeRunner {
 protected:
  GraphEngineTest() : machine(MachineOptions{}), engine(machine, *this) {
    machine.add_consumer(&log);
  }

  std::vector<Value> run_node(const NodeRef& node, std::vector<Value> gradients,
                              bool grad_mode) override {
    const std::string name(node->name);
    ran.push_back(name);
    grad_modes.push_back(grad_mode);
    const auto body = bodies.find(name);
    if (body != bodies.end()) return body->second(std::move(gradients));
    std::vector<Value> results;
    for (std::size_t i = 0; i < node->next.size(); ++i) results.push_back({tensor(), {}});
    return results;
  }
  Value& gradient_of(Slot global) override { return totals[global]; }
  std::shared_ptr<Node> new_node(std::string_view name) override {
    const NodeRef made = node("", {});
    made->name = name;
    return made;
  }
  Time memory_ns(std::int64_t) override { return 1; }

  Tensor tensor() {
    static const auto window =
        std::make_shared<const Window>(Window{contiguous_layout(DType::kF32, {256}), {0, 1024}});
    return make_tensor(machine.allocate(1024, machine.current_stream()), {window, 0},
                       machine.new_version());
  }
  NodeRef node(const char* name, std::initializer_list<Edge> next, std::uint32_t stream = 0) {
    const auto made = std::make_shared<Node>();
    made->name = name;
    made->sequence = ++made_;
    made->stream = machine.compute_stream(stream);
    made->next = next;
    return made;
  }
  NodeRef leaf(Slot global, std::uint32_t stream = 0) {
    const NodeRef made = node("leaf", {}, stream);
    made->sequence = (std::uint64_t{1} << 63) + global;
    made->leaf = global;
    return made;
  }
  void backward(const NodeRef& root, bool retain = false, bool create = false) {
    const std::vector<GraphEngine::Root> roots = {{{root, 0}, tensor()}};
    engine.run(roots, retain, create);
  }
  std::vector<Value> gradients(const NodeRef& root, const std::vector<Edge>& wanted) {
    const std::vector<GraphEngine::Root> roots = {{{root, 0}, tensor()}};
    return engine.run(roots, false, false, wanted);
  }
  // A node that keeps a tensor for its backward.
  static void keep(const NodeRef& node, Tensor tensor) {
    node->saved.emplace_back();
    node->saved.back().plain = std::move(tensor);
  }

  test::OpLog log;
  Machine machine;
  GraphEngine engine;
  Names ran;
  std::vector<bool> grad_modes;
  std::map<std::string, std::function<std::vector<Value>(std::vector<Value>)>> bodies;
  std::map<Slot, Value> totals;

 private:
  std::uint64_t made_ = 0;
};

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

TEST_F(GraphEngineTest, GradientsThatMeetAreAddedInPlaceWhereNobodyElseSeesThem) {
  const NodeRef last = node("last", {});
  const NodeRef a = node("a", {{last, 0}});
  const NodeRef b = node("b", {{last, 0}});
  const NodeRef root = node("root", {{a, 0}, {b, 0}});
  backward(root, true);
  EXPECT_EQ(log.kernels(), Names{"add_"});
  const test::LoggedOp add = log.of(StreamOpKind::kKernel).front();
  EXPECT_EQ(add.writes, std::vector<Range>{add.reads[0]});
}

TEST_F(GraphEngineTest, GradientsThatSomebodySeesAreAddedOutOfPlace) {
  const NodeRef last = node("last", {});
  const NodeRef a = node("a", {{last, 0}});
  const NodeRef b = node("b", {{last, 0}});
  Tensor seen;
  bodies["b"] = [&](std::vector<Value>) {  // runs first
    seen = tensor();
    return std::vector<Value>{{seen, {}}};
  };
  backward(node("root", {{a, 0}, {b, 0}}));
  EXPECT_EQ(log.kernels(), Names{"add"});
  EXPECT_EQ(seen->version->value, 0u);
}

TEST_F(GraphEngineTest, AViewOfASeenStorageIsNotWrittenEither) {
  const NodeRef last = node("last", {});
  const NodeRef a = node("a", {{last, 0}});
  const NodeRef b = node("b", {{last, 0}});
  Tensor base;
  bodies["b"] = [&](std::vector<Value>) {
    base = tensor();
    return std::vector<Value>{{make_tensor(base->storage, base->layout, base->version), {}}};
  };
  backward(node("root", {{a, 0}, {b, 0}}));
  EXPECT_EQ(log.kernels(), Names{"add"});
}

TEST_F(GraphEngineTest, UnderCreateGraphNothingIsWrittenInPlace) {
  const NodeRef w = leaf(0);
  const NodeRef last = node("last", {{w, 0}});
  const NodeRef a = node("a", {{last, 0}});
  const NodeRef b = node("b", {{last, 0}});
  const NodeRef root = node("root", {{a, 0}, {b, 0}});
  backward(root, false, true);
  EXPECT_EQ(log.kernels(), Names{"add"});
  EXPECT_EQ(grad_modes, std::vector<bool>(4, true));
  const Tensor first = totals[0].tensor;
  backward(root, false, true);
  EXPECT_EQ(log.kernels(), (Names{"add", "add", "add"}));
  EXPECT_NE(totals[0].tensor, first);
  EXPECT_EQ(first->version->value, 0u);
}

// It once led to the first summand alone, and derivatives of higher order lost the others' part.
TEST_F(GraphEngineTest, UnderCreateGraphASumLeadsToAllThatItIsOf) {
  const NodeRef w = leaf(0);
  const NodeRef last = node("last", {{w, 0}});
  std::vector<Edge> made;
  for (const char* name : {"a", "b", "c"}) {
    made.push_back({node("made", {}), 0});
    bodies[name] = [this, edge = made.back()](const std::vector<Value>&) {
      return std::vector<Value>{{tensor(), edge}};
    };
  }
  Edge sum;
  bodies["last"] = [&](std::vector<Value> gradients) {
    sum = gradients[0].edge;
    return std::vector<Value>{{tensor(), sum}};
  };
  const NodeRef a = node("a", {{last, 0}});
  const NodeRef b = node("b", {{last, 0}});
  const NodeRef c = node("c", {{last, 0}});
  const NodeRef root = node("root", {{a, 0}, {b, 0}, {c, 0}});
  backward(root, false, true);
  const Edge first = sum;
  backward(root, false, true);
  ran.clear();
  bodies.clear();
  backward(first.node);
  EXPECT_EQ(ran, (Names{"AddBackward", "AddBackward", "made", "made", "made"}));

  // So does what a global accumulates.
  const Node& total = *totals[0].edge.node;
  ASSERT_EQ(total.next.size(), 2u);
  EXPECT_EQ(total.next[0].node, first.node);
  EXPECT_EQ(total.next[1].node, sum.node);
}

TEST_F(GraphEngineTest, TheFirstGradientOfAGlobalIsTakenOverWhereItCanBe) {
  const NodeRef w = leaf(0);
  Tensor seen;
  std::weak_ptr<TensorImpl> made;
  bodies["lone"] = [&](std::vector<Value>) {
    std::vector<Value> results = {{tensor(), {}}};
    made = results[0].tensor;
    return results;
  };
  bodies["known"] = [&](std::vector<Value>) {
    seen = tensor();
    return std::vector<Value>{{seen, {}}};
  };
  backward(node("lone", {{w, 0}}));
  EXPECT_EQ(totals[0].tensor, made.lock());
  EXPECT_EQ(log.kernels(), Names{});

  const NodeRef other = leaf(1);
  backward(node("known", {{other, 0}}));
  EXPECT_NE(totals[1].tensor->storage, seen->storage);
  const auto clones = log.of(StreamOpKind::kCopy);
  ASSERT_EQ(clones.size(), 1u);
  EXPECT_EQ(clones[0].name, "clone");
  EXPECT_EQ(clones[0].reads[0], range_of(seen));
  EXPECT_EQ(clones[0].writes[0], range_of(totals[1].tensor));
}

TEST_F(GraphEngineTest, LaterGradientsOfAGlobalAreAddedToTheFirst) {
  const NodeRef w = leaf(0);
  const NodeRef root = node("root", {{w, 0}});
  backward(root, true);
  const Tensor total = totals[0].tensor;
  backward(root, true);
  EXPECT_EQ(totals[0].tensor, total);
  EXPECT_EQ(total->version->value, 1u);
  EXPECT_EQ(log.kernels(), Names{"add_"});
}

TEST_F(GraphEngineTest, WantedGradientsComeBackInOrderAndNoGlobalIsTouched) {
  const NodeRef w = leaf(0);
  const NodeRef far = node("far", {{leaf(1), 0}});
  const NodeRef inner = node("inner", {{w, 0}, {far, 0}});
  const NodeRef aside = node("aside", {{leaf(2), 0}});
  const NodeRef root = node("root", {{inner, 0}, {aside, 0}});
  std::weak_ptr<TensorImpl> to_w;
  std::weak_ptr<TensorImpl> to_far;
  bodies["inner"] = [&](std::vector<Value>) {
    std::vector<Value> results = {{tensor(), {}}, {tensor(), {}}};
    to_w = results[0].tensor;
    to_far = results[1].tensor;
    return results;
  };
  const std::vector<Value> found = gradients(root, {{far, 0}, {w, 0}});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].tensor, to_far.lock());
  EXPECT_EQ(found[1].tensor, to_w.lock());
  EXPECT_NE(found[0].tensor, nullptr);
  EXPECT_EQ(ran, (Names{"root", "inner"}));  // neither `far`, where it ends, nor `aside`
  EXPECT_TRUE(totals.empty());
}

TEST_F(GraphEngineTest, AWantedNodeThatLeadsToAnotherRunsToo) {
  const NodeRef inner = node("inner", {{leaf(0), 0}});
  const NodeRef outer = node("outer", {{inner, 0}});
  const auto found = gradients(node("root", {{outer, 0}}), {{outer, 0}, {inner, 0}});
  EXPECT_EQ(ran, (Names{"root", "outer"}));
  EXPECT_NE(found[0].tensor, nullptr);
  EXPECT_NE(found[1].tensor, nullptr);
}

TEST_F(GraphEngineTest, AWantedEdgeThatTheRootsDoNotReachHasNoGradient) {
  const NodeRef elsewhere = node("elsewhere", {});
  const NodeRef here = node("here", {});
  EXPECT_EQ(gradients(node("root", {{here, 0}}), {{elsewhere, 0}})[0].tensor, nullptr);
}

TEST_F(GraphEngineTest, AWantedGradientIsOrderedBeforeWhatTheCallerDoesNext) {
  const NodeRef inner = node("inner", {}, 1);
  gradients(node("root", {{inner, 0}}, 1), {{inner, 0}});
  // To the root's stream, and back.
  const auto records = log.of(StreamOpKind::kRecord);
  const auto waits = log.of(StreamOpKind::kWait);
  ASSERT_EQ(waits.size(), 2u);
  EXPECT_EQ(records[1].stream, machine.compute_stream(1));
  EXPECT_EQ(waits[1].stream, machine.compute_stream(0));
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
