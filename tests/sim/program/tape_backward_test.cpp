// Backward on the tape: gradients accumulate, may be differentiated in their turn, and bodies may
// run backwards of their own.
#include "sim/program/tape.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/sim/program/tape_rig.h"

namespace ferry::sim {
namespace {

using test::Names;
using test::Source;
using test::Trial;
using test::Watcher;

TEST(TapeTest, MicrobatchesAccumulate) {
  Source s;
  const CodeId forward = s.code(CodeKind::kSegment, "forward");
  s.result(forward, s.layer(forward, "a", {s.w}, {s.w}));
  const Slot first = s.call(forward);
  const Slot second = s.call(forward);
  s.backward(second);
  s.backward(first);
  Trial run(s.program);
  run.run();
  EXPECT_EQ(run.log.kernels(), (Names{"a", "a", "ones_like", "grad", "ones_like", "grad", "add_"}));
  EXPECT_EQ(run.alive(), 1);  // the gradient
}

TEST(TapeTest, GradientsThatAreViewsAreAddedOutOfPlace) {
  for (const bool views : {false, true}) {
    Source s;
    const CodeId backward = s.code(CodeKind::kBody, "Backward");
    const Slot made = s.op(backward, "grad", {s.argument(backward)}, s.type());
    s.result(backward, views ? s.view(backward, made, s.type()) : made);
    const CodeId forward = s.code(CodeKind::kSegment, "forward");
    const Slot h = s.layer(forward, "h", {s.w}, {});
    const Slot a = s.layer(forward, "a", {h}, {}, backward);
    const Slot b = s.layer(forward, "b", {h}, {}, backward);
    s.result(forward, s.layer(forward, "c", {a, b}, {}));
    s.backward(s.call(forward));
    Trial run(s.program);
    run.run();
    EXPECT_EQ(run.log.kernels(), (Names{"h", "a", "b", "c", "ones_like", "grad", "grad", "grad",
                                        "grad", views ? "add" : "add_", "grad"}));
  }
}

// As PyTorch's own nodes do.
TEST(TapeTest, ANodeThatNoGradientComesToComputesNothing) {
  for (const bool gives : {true, false}) {
    Source s;
    const CodeId backward = s.code(CodeKind::kBody, "Backward");
    const Slot made = s.op(backward, "grad", {s.argument(backward)}, s.type());
    s.result(backward, gives ? made : kNoSlot);
    const CodeId forward = s.code(CodeKind::kSegment, "forward");
    const Slot h = s.layer(forward, "h", {s.w}, {s.w});
    s.result(forward, s.layer(forward, "a", {h}, {}, backward));
    s.backward(s.call(forward));
    Trial run(s.program);
    run.run();
    Names kernels = {"h", "a", "ones_like", "grad"};
    if (gives) kernels.push_back("grad");
    EXPECT_EQ(run.log.kernels(), kernels);
    EXPECT_EQ(run.alive(), gives ? 1 : 0);
  }
}

// A log's operators have no gradients: nodes order them alone.
TEST(TapeTest, ANodeThatReadsNoGradientRunsWithoutOne) {
  Source s;
  const CodeId none = s.code(CodeKind::kBody, "NoneBackward");
  s.argument(none);
  s.result(none, kNoSlot);
  const CodeId works = s.code(CodeKind::kBody, "WorksBackward");
  s.argument(works);
  s.result(works, s.op(works, "works", {}, s.type()));
  const CodeId forward = s.code(CodeKind::kSegment, "forward");
  const Slot h = s.layer(forward, "h", {s.w}, {}, works);
  s.result(forward, s.layer(forward, "a", {h}, {}, none));
  s.backward(s.call(forward));
  Trial run(s.program);
  run.run();
  EXPECT_EQ(run.log.kernels(), (Names{"h", "a", "ones_like", "works"}));
}

TEST(TapeTest, ASecondBackwardNeedsRetainGraph) {
  for (const bool retain : {false, true}) {
    Source s;
    const CodeId forward = s.code(CodeKind::kSegment, "forward");
    s.result(forward, s.layer(forward, "a", {s.w}, {s.w}));
    const Slot root = s.call(forward);
    s.backward(root, retain);
    s.backward(root);
    Trial run(s.program);
    run.run();
    EXPECT_EQ(run.errors().size(), retain ? 0u : 1u);
  }
}

TEST(TapeTest, AGradientCanBeDifferentiated) {
  Source s;
  // The gradient of y is made by a node of its own, whose backward is `second`.
  const CodeId second = s.body(1, 1);
  const CodeId first = s.code(CodeKind::kBody, "Backward");
  const Slot argument = s.argument(first);
  const Slot saved = s.saved(first);
  s.result(first, s.layer(first, "grad", {saved}, {argument}, second));
  const CodeId forward = s.code(CodeKind::kSegment, "forward");
  s.result(forward, s.layer(forward, "y", {s.w}, {s.w}, first));
  const Slot y = s.call(forward);
  const Slot gradient = s.slot(0);
  s.add(0, Backward{{y}, {s.w}, {gradient}, false, true});
  const CodeId norm = s.code(CodeKind::kSegment, "norm");
  const Slot x = s.argument(norm);
  s.result(norm, s.layer(norm, "norm", {x}, {x}));
  s.backward(s.call(norm, {gradient}));
  Trial run(s.program);
  bool touched = false;
  run.listener.kernel = [&](const StreamOp& op) {
    if (op.name == "norm") touched = run.tape->gradients()[s.w].tensor != nullptr;
  };
  run.run();
  EXPECT_EQ(run.errors(), Names{});
  EXPECT_FALSE(touched);
  EXPECT_EQ(run.log.kernels(),
            (Names{"y", "ones_like", "grad", "norm", "ones_like", "grad", "grad"}));
  EXPECT_NE(run.tape->gradients()[s.w].tensor, nullptr);
}

// A node with two outputs of which one has no gradient, whose body saves what it was given.
TEST(TapeTest, AGradientThatNobodyGaveIsSavedAsNothing) {
  Source s;
  const CodeId second = s.body(1, 2);
  const CodeId first = s.code(CodeKind::kBody, "Backward");
  const std::vector<Slot> given = {s.argument(first), s.argument(first)};
  const Slot saved = s.saved(first);
  s.result(first, s.layer(first, "grad", {saved}, given, second));
  const CodeId forward = s.code(CodeKind::kSegment, "forward");
  const std::vector<Slot> out = {s.slot(forward), s.slot(forward)};
  s.add(forward, MakeNode{"pair", s.node_id(), {s.w}, out, {s.w}, first});
  s.add(forward, Op{"pair", {s.w}, out, {s.type(), s.type()}, {}, 0, 0, 0, 0});
  s.result(forward, out[0]);
  const Slot gradient = s.slot(0);
  s.add(0, Backward{{s.call(forward)}, {s.w}, {gradient}, false, true});
  s.backward(gradient);
  Trial run(s.program);
  run.run();
  EXPECT_EQ(run.errors(), Names{});
  EXPECT_EQ(run.log.kernels(), (Names{"pair", "ones_like", "grad", "ones_like", "grad"}));
}

TEST(TapeTest, WithoutCreateGraphABodyMakesNoNodes) {
  Source s;
  const CodeId first = s.code(CodeKind::kBody, "Backward");
  s.argument(first);
  const Slot saved = s.saved(first);
  s.result(first, s.layer(first, "grad", {saved}, {saved}));
  const CodeId forward = s.code(CodeKind::kSegment, "forward");
  s.result(forward, s.layer(forward, "y", {s.w}, {s.w}, first));
  s.backward(s.call(forward));
  Trial run(s.program);
  const auto watcher = std::make_shared<Watcher>();
  const HooksGuard<SimAutograd> guard(run.tape->autograd(), watcher);
  run.run();
  EXPECT_EQ(watcher->packs, 1);
}

TEST(TapeTest, ASegmentCalledInABodyIsDifferentiatedThere) {
  Source s;
  const CodeId segment = s.code(CodeKind::kSegment, "recompute");
  s.result(segment, s.layer(segment, "again", {s.w}, {s.w}));
  const CodeId body = s.code(CodeKind::kBody, "Checkpoint");
  s.argument(body);
  const Slot y = s.call(segment, {}, body);
  const Slot inner = s.slot(body);
  s.add(body, Backward{{y}, {s.w}, {inner}, false, false});
  s.result(body, inner);
  const CodeId forward = s.code(CodeKind::kSegment, "forward");
  s.result(forward, s.layer(forward, "y", {s.w}, {}, body));
  s.backward(s.call(forward));
  Trial run(s.program);
  run.run();
  EXPECT_EQ(run.errors(), Names{});
  EXPECT_EQ(run.log.kernels(), (Names{"y", "ones_like", "again", "ones_like", "grad"}));
  EXPECT_NE(run.tape->gradients()[s.w].tensor, nullptr);
}

}  // namespace
}  // namespace ferry::sim
