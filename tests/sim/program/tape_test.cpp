#include "sim/program/tape.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/program/tape_rig.h"

namespace ferry::sim {
namespace {

using test::kBytes;
using test::Names;
using test::Source;
using test::Trial;

// How many storages live beside the globals when each kernel is launched.
std::vector<std::pair<std::string, std::int64_t>> lives(const Program& program) {
  Trial run(program);
  std::vector<std::pair<std::string, std::int64_t>> seen;
  run.listener.kernel = [&](const StreamOp& op) { seen.emplace_back(op.name, run.alive()); };
  run.run();
  return seen;
}

TEST(TapeTest, AStorageDiesWithItsLastSlot) {
  Source s;
  const Slot a = s.op(0, "a", {s.w}, s.type());
  const Slot b = s.op(0, "b", {a}, s.type());
  s.add(0, Free{{a}});
  s.op(0, "c", {b}, s.type());
  using Lives = decltype(lives(s.program));
  EXPECT_EQ(lives(s.program), (Lives{{"a", 1}, {"b", 2}, {"c", 2}}));
}

TEST(TapeTest, AViewKeepsItsBasesStorageAlive) {
  Source s;
  const Slot a = s.op(0, "a", {s.w}, s.type());
  const Slot view = s.view(0, a, s.type());
  s.add(0, Free{{a}});
  s.op(0, "b", {view}, s.type());
  s.add(0, Free{{view}});
  s.op(0, "c", {}, s.type());
  using Lives = decltype(lives(s.program));
  EXPECT_EQ(lives(s.program), (Lives{{"a", 1}, {"b", 2}, {"c", 2}}));
}

TEST(TapeTest, WhatIsSavedLivesUntilItsNodeHasRun) {
  Source s;
  const CodeId forward = s.code(CodeKind::kSegment, "forward");
  const Slot a = s.layer(forward, "a", {s.w}, {});
  const Slot b = s.layer(forward, "b", {a, s.w}, {a});
  s.result(forward, b);
  s.backward(s.call(forward));
  s.op(0, "end", {}, s.type());
  using Lives = decltype(lives(s.program));
  // `a` lives on as it is saved, b as the main code's root. At the first "grad" there are ones,
  // too; both gradients of b's node are made, w's is taken over, and `a` itself is gone when its
  // node runs.
  EXPECT_EQ(lives(s.program), (Lives{{"a", 1},
                                     {"b", 2},
                                     {"ones_like", 3},
                                     {"grad", 4},
                                     {"grad", 5},
                                     {"grad", 5},
                                     {"add_", 4},
                                     {"end", 3}}));
}

TEST(TapeTest, AGraphThatIsDroppedFreesWhatItSaved) {
  Source s;
  const CodeId forward = s.code(CodeKind::kSegment, "forward");
  const Slot a = s.layer(forward, "a", {s.w}, {});
  s.result(forward, s.layer(forward, "b", {a}, {a}));
  const Slot b = s.call(forward);
  s.add(0, Free{{b}});
  Trial run(s.program);
  run.tape->run();
  EXPECT_EQ(run.alive(), 0);
}

TEST(TapeTest, AViewSharesStorageAndVersionAndReadsItsWindow) {
  Source s;
  const Slot a = s.op(0, "a", {s.w}, s.type());
  Layout half = contiguous_layout(DType::kBF16, {kBytes / 4});
  half.offset = kBytes / 4;
  const Slot view = s.view(0, a, s.layout(half));
  s.op(0, "b", {view}, s.type());
  Trial run(s.program);
  run.run();
  const auto kernels = run.log.of(StreamOpKind::kKernel);
  const Range whole = kernels[0].writes[0];
  EXPECT_EQ(kernels[1].reads[0], (Range{whole.address + kBytes / 2, kBytes / 2}));
}

TEST(TapeTest, AnAliasSharesItsGlobalsStorageAndVersion) {
  Source s;
  const Slot tied = s.global(GlobalKind::kParameter, s.type());
  s.program.globals[tied].alias = s.w;
  const Slot other = s.global(GlobalKind::kBuffer, s.type());
  Trial run(s.program);
  const auto& globals = run.tape->globals();
  EXPECT_EQ(globals[tied].tensor->storage, globals[s.w].tensor->storage);
  EXPECT_EQ(globals[tied].tensor->version, globals[s.w].tensor->version);
  EXPECT_NE(globals[other].tensor->storage, globals[s.w].tensor->storage);
  EXPECT_NE(run.contents(globals[other]), run.contents(globals[s.w]));
  EXPECT_FALSE(globals[other].edge);
  EXPECT_EQ(run.machine.live_storages(), 2);
}

TEST(TapeTest, AMovedGlobalHasAnotherStorageWithTheSameValue) {
  Source s;
  const CodeId forward = s.code(CodeKind::kSegment, "forward");
  s.result(forward, s.layer(forward, "a", {s.w}, {s.w}));
  const Slot a = s.call(forward);
  s.add(0, Move{s.w});
  s.backward(a);
  Trial run(s.program);
  const std::uint64_t before = run.contents(run.tape->globals()[s.w]);
  const std::uint64_t identity = run.tape->globals()[s.w].tensor->storage->identity;
  run.run();
  EXPECT_NE(run.tape->globals()[s.w].tensor->storage->identity, identity);
  EXPECT_EQ(run.contents(run.tape->globals()[s.w]), before);
  EXPECT_EQ(run.errors(), Names{});
  EXPECT_EQ(run.alive(), 1);  // the gradient: nobody holds the storage of before
}

TEST(TapeTest, EveryCallHasAFreshFrame) {
  Source s;
  const CodeId segment = s.code(CodeKind::kSegment, "segment");
  const Slot argument = s.argument(segment);
  s.result(segment, s.layer(segment, "a", {argument, s.w}, {argument}));
  const Slot first = s.call(segment, {s.w});
  const Slot second = s.call(segment, {first});
  s.backward(second);
  Trial run(s.program);
  run.run();
  const auto kernels = run.log.of(StreamOpKind::kKernel);
  EXPECT_NE(kernels[0].writes[0], kernels[1].writes[0]);
  EXPECT_EQ(kernels[1].reads[0], kernels[0].writes[0]);
  EXPECT_EQ(run.errors(), Names{});
  // Two nodes: each ran its body, of two gradients.
  EXPECT_EQ(std::ranges::count(run.log.kernels(), "grad"), 4);
}

TEST(TapeTest, StreamsAreSetSyncedAndRecorded) {
  Source s;
  s.add(0, Sync{0, 1});
  s.add(0, SetStream{1});
  const Slot a = s.op(0, "a", {s.w}, s.type());
  s.add(0, RecordUse{a, 0});
  Trial run(s.program);
  run.run();
  const StreamId side = run.machine.compute_stream(1);
  EXPECT_EQ(run.log.of(StreamOpKind::kWait).at(0).stream, side);
  EXPECT_EQ(run.log.of(StreamOpKind::kRecord).at(0).stream, run.machine.compute_stream(0));
  EXPECT_EQ(run.log.of(StreamOpKind::kKernel).at(0).stream, side);
  EXPECT_EQ(run.log.of(StreamOpKind::kRecordUse).at(0).stream, run.machine.compute_stream(0));
}

TEST(TapeTest, EachCallOfTheMainCodeIsAnnounced) {
  Source s;
  const CodeId inner = s.code(CodeKind::kSegment, "inner");
  s.result(inner, s.layer(inner, "a", {s.w}, {}));
  const CodeId outer = s.code(CodeKind::kSegment, "outer");
  s.result(outer, s.call(inner, {}, outer));
  s.call(outer);
  s.call(outer);
  Trial run(s.program);
  int calls = 0;
  run.tape->before_call([&] { ++calls; });
  run.run();
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace ferry::sim
