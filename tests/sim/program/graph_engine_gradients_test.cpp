// Gradients meet at nodes, are accumulated in globals, and go back to callers that ask for them.
#include "sim/program/graph_engine.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/sim/program/graph_engine_rig.h"

namespace ferry::sim {
namespace {

using test::Names;
using test::NodeRef;
using GraphEngineTest = test::GraphEngineRig;

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

}  // namespace
}  // namespace ferry::sim
