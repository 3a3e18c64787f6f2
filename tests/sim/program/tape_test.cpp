#include "sim/program/tape.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "formats/program_check.h"
#include "tests/sim/support/tiny.h"

namespace ferry::sim {
namespace {

using Names = std::vector<std::string>;
constexpr std::int64_t kBytes = 1024;  // of every tensor here but scalars

class Measured final : public KernelTimes {
 public:
  Time op_ns(const Op&, DType) const override { return 10; }
};

// A builder with one parameter, and names for what most programs here do.
struct Source : Builder {
  Source() { w = global(GlobalKind::kParameter, type()); }
  TypeId type() { return Builder::type({kBytes / 2}); }

  // A body that makes a gradient for each input, of all that it is given.
  CodeId body(std::size_t inputs, std::size_t saves) {
    const CodeId id = code(CodeKind::kBody, "Backward");
    std::vector<Slot> have = {argument(id)};
    for (std::size_t i = 0; i < saves; ++i) have.push_back(saved(id));
    for (std::size_t i = 0; i < inputs; ++i) result(id, op(id, "grad", have, type()));
    return id;
  }
  // y = name(x, w), which saves `keeps`; runs `backward`, or a body made for it.
  Slot layer(CodeId id, const std::string& name, std::vector<Slot> in, std::vector<Slot> keeps,
             CodeId backward = 0) {
    const Slot y = slot(id);
    if (backward == 0) backward = body(in.size(), keeps.size());
    add(id, MakeNode{name, node_id(), in, {y}, std::move(keeps), backward});
    add(id, Op{name, std::move(in), {y}, {type()}, {}, 0, 0, 0, 0});
    return y;
  }
  Slot call(CodeId segment, std::vector<Slot> in = {}, CodeId from = 0) {
    const Slot out = slot(from);
    add(from, Call{segment, std::move(in), {out}});
    return out;
  }
  void backward(Slot root, bool retain = false) { add(0, Backward{{root}, {}, {}, retain, false}); }

  Slot w = 0;
};

// Keeps the tensor, and tells what it saw.
class Watcher final : public Hooks<Tensor> {
 public:
  std::unique_ptr<Saved<Tensor>> pack(const Tensor& tensor) override {
    ++packs;
    class Kept final : public Saved<Tensor> {
     public:
      Kept(Watcher& watcher, Tensor tensor) : watcher_(watcher), tensor_(std::move(tensor)) {}
      Tensor unpack() override { return watcher_.give ? watcher_.give(tensor_) : tensor_; }

     private:
      Watcher& watcher_;
      Tensor tensor_;
    };
    return std::make_unique<Kept>(*this, std::make_shared<TensorImpl>(*tensor));
  }
  int packs = 0;
  std::function<Tensor(const Tensor&)> give;  // another tensor than was packed
};

class Listener final : public StreamOpConsumer {
 public:
  explicit Listener(check::Values& values) : values_(values) {}
  void operator()(const StreamOp& op) override {
    values_(op);
    if (op.kind == StreamOpKind::kKernel && kernel) kernel(op);
  }
  std::function<void(const StreamOp&)> kernel;

 private:
  check::Values& values_;
};

// A run of a program, checked for sense first.
struct Trial {
  explicit Trial(const Program& program) : Trial(program, MachineOptions{}) {}
  Trial(const Program& program, const MachineOptions& options)
      : machine(options), listener(values) {
    check_program(program, "test");
    machine.add_consumer(&log);
    machine.add_consumer(&listener);
    tape = std::make_unique<Tape>(program, machine, times, &values);
    born_ = machine.live_storages();
  }
  void run() {
    tape->run();
    tape->drop_frames();
  }
  // Beside the globals.
  std::int64_t alive() const { return machine.live_storages() - born_; }
  Names errors() const {
    Names messages;
    for (const ProgramError& error : tape->errors()) messages.push_back(error.message);
    return messages;
  }
  std::uint64_t contents(const Value& value) const { return values.read(range_of(value.tensor)); }

  test::OpLog log;
  check::Values values;
  Machine machine;
  Listener listener;
  Measured times;
  std::unique_ptr<Tape> tape;

 private:
  std::int64_t born_ = 0;
};

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

// c = f(a); `then` may do something to `a`; backward.
Names errors_after(const std::function<void(Source&, CodeId, Slot)>& then) {
  Source s;
  const CodeId forward = s.code(CodeKind::kSegment, "forward");
  const Slot a = s.layer(forward, "a", {s.w}, {});
  const Slot c = s.layer(forward, "c", {a}, {a});
  then(s, forward, a);
  s.result(forward, c);
  s.backward(s.call(forward));
  Trial run(s.program);
  run.run();
  return run.errors();
}

TEST(TapeTest, ASavedTensorThatIsWrittenLaterIsPyTorchsErrorWhenItComesBack) {
  const Names modified = {
      "one of the variables needed for gradient computation has been modified by an inplace "
      "operation: it is at version 1; expected version 0 instead"};
  EXPECT_EQ(errors_after([](Source&, CodeId, Slot) {}), Names{});
  EXPECT_EQ(errors_after([](Source& s, CodeId id, Slot a) { s.write(id, "relu_", a); }), modified);
  EXPECT_EQ(errors_after([](Source& s, CodeId id, Slot a) {
              s.write(id, "relu_", s.view(id, a, s.type()));
            }),
            modified);
}

TEST(TapeTest, ARaiseInForwardIsNotedAndTheNextCallWorks) {
  Source s;
  const CodeId bad = s.code(CodeKind::kSegment, "bad");
  const Slot a = s.layer(bad, "a", {s.w}, {});
  s.add(bad, SetStream{1});
  s.add(bad, Raise{"boom"});
  s.result(bad, s.layer(bad, "never", {a}, {a}));
  const CodeId good = s.code(CodeKind::kSegment, "good");
  s.result(good, s.layer(good, "b", {s.w}, {s.w}));
  s.backward(s.call(bad));
  s.backward(s.call(good));
  for (std::uint32_t i = 0; i < 4; ++i) s.program.codes[0].statements[i].line = 40 + i;
  Trial run(s.program);
  const StreamId stream = run.machine.current_stream();
  run.run();
  ASSERT_EQ(run.tape->errors().size(), 1u);
  EXPECT_EQ(run.tape->errors()[0].line, 40u);
  EXPECT_EQ(run.tape->errors()[0].message, "boom");
  EXPECT_EQ(run.log.kernels(), (Names{"a", "b", "ones_like", "grad"}));
  EXPECT_EQ(run.machine.current_stream(), stream);
  EXPECT_NE(run.tape->gradients()[s.w].tensor, nullptr);
}

TEST(TapeTest, ARaiseInBackwardEndsItAndTheNextStepWorks) {
  Source s;
  const CodeId body = s.code(CodeKind::kBody, "Backward");
  s.argument(body);
  s.add(body, Raise{"boom"});
  s.result(body, s.op(body, "never", {}, s.type()));
  const CodeId bad = s.code(CodeKind::kSegment, "bad");
  s.result(bad, s.layer(bad, "a", {s.w}, {}, body));
  const CodeId good = s.code(CodeKind::kSegment, "good");
  s.result(good, s.layer(good, "b", {s.w}, {}));
  s.backward(s.call(bad));
  s.backward(s.call(good));
  s.program.codes[0].statements[1].line = 7;
  Trial run(s.program);
  run.run();
  ASSERT_EQ(run.tape->errors().size(), 1u);
  EXPECT_EQ(run.tape->errors()[0].line, 7u);
  EXPECT_EQ(run.log.kernels(), (Names{"a", "ones_like", "b", "ones_like", "grad"}));
  EXPECT_EQ(run.alive(), 1);  // the gradient
}

TEST(TapeTest, WhatFailsUnderTheProgramIsNotedToo) {
  Source s;
  s.op(0, "large", {s.w}, s.Builder::type({std::int64_t{64} << 20}));
  s.op(0, "small", {s.w}, s.type());
  MachineOptions options;
  options.device_bytes = std::int64_t{8} << 20;
  Trial run(s.program, options);
  run.run();
  ASSERT_EQ(run.errors().size(), 1u);
  EXPECT_EQ(run.errors()[0].rfind("CUDA out of memory.", 0), 0u);
  EXPECT_EQ(run.log.kernels(), Names{"small"});
}

// Packs that hooks see of a forward that saves twice, excluding the first; `raises` in the region,
// and calls it again.
int packs_with_exclusion(bool raises) {
  Source s;
  const CodeId forward = s.code(CodeKind::kSegment, "forward");
  s.add(forward, Exclude{true});
  const Slot a = s.layer(forward, "a", {s.w}, {s.w});
  if (raises) s.add(forward, Raise{"boom"});
  s.add(forward, Exclude{false});
  s.result(forward, s.layer(forward, "b", {a}, {a}));
  s.call(forward);
  const CodeId after = s.code(CodeKind::kSegment, "after");
  s.result(after, s.layer(after, "c", {s.w}, {s.w}));
  s.call(after);
  Trial run(s.program);
  const auto watcher = std::make_shared<Watcher>();
  const HooksGuard<SimAutograd> guard(run.tape->autograd(), watcher);
  run.run();
  EXPECT_EQ(run.errors().size(), raises ? 1u : 0u);
  return watcher->packs;
}

TEST(TapeTest, HooksSeeWhatIsSavedOutsideOfExclusions) {
  EXPECT_EQ(packs_with_exclusion(false), 2);  // b's and c's
  EXPECT_EQ(packs_with_exclusion(true), 1);   // c's: leaving by a raise ends the exclusion
}

TEST(TapeTest, AnExclusionThatTheMainCodeLeavesOpenEndsWithTheRun) {
  Source s;
  s.add(0, Exclude{true});
  s.add(0, Raise{"boom"});
  Trial run(s.program);
  const auto watcher = std::make_shared<Watcher>();
  {
    const HooksGuard<SimAutograd> guard(run.tape->autograd(), watcher);
    run.tape->run();
  }
  run.tape->drop_frames();
  EXPECT_EQ(run.errors(), Names{"boom"});
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

TEST(TapeTest, ABackwardInItsOwnBackwardEndsWithAnError) {
  Source s;
  const CodeId body = s.code(CodeKind::kBody, "Endless");
  s.argument(body);
  const CodeId segment = s.code(CodeKind::kSegment, "segment");
  s.result(segment, s.layer(segment, "y", {s.w}, {}, body));
  s.add(body, Backward{{s.call(segment, {}, body)}, {}, {}, false, false});
  s.result(body, s.op(body, "never", {}, s.type()));
  s.backward(s.call(segment));
  Trial run(s.program);
  run.run();
  ASSERT_EQ(run.errors().size(), 1u);
  EXPECT_NE(run.errors()[0].find("in each other, more than 400 deep"), std::string::npos)
      << run.errors()[0];
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

std::vector<check::Hazard> hazards_with(const std::function<Tensor(Trial&, const Tensor&)>& give) {
  Source s;
  const CodeId forward = s.code(CodeKind::kSegment, "forward");
  const Slot a = s.layer(forward, "a", {s.w}, {});
  s.result(forward, s.layer(forward, "Mm", {a, s.w}, {a}));
  s.backward(s.call(forward));
  Trial run(s.program);
  const auto watcher = std::make_shared<Watcher>();
  watcher->give = [&](const Tensor& tensor) { return give(run, tensor); };
  const HooksGuard<SimAutograd> guard(run.tape->autograd(), watcher);
  run.run();
  EXPECT_EQ(watcher->packs, 1);
  return run.tape->hazards();
}

TEST(TapeTest, HooksThatReturnAnotherTensorAreAWrongValue) {
  EXPECT_TRUE(hazards_with([](Trial&, const Tensor& tensor) { return tensor; }).empty());
  // The same bytes elsewhere are right.
  EXPECT_TRUE(hazards_with([](Trial& run, const Tensor& tensor) {
                const Tensor copy =
                    make_tensor(run.machine.allocate(kBytes, run.machine.current_stream()),
                                tensor->layout, run.machine.new_version());
                run.machine.copy_on_device("copy", range_of(tensor), range_of(copy), 1);
                return copy;
              }).empty());
  const std::vector<check::Hazard> wrong =
      hazards_with([](Trial& run, const Tensor&) { return run.tape->globals()[0].tensor; });
  ASSERT_EQ(wrong.size(), 1u);
  EXPECT_EQ(wrong[0].kind, check::HazardKind::kValue);
  EXPECT_EQ(to_string(wrong[0]),
            "wrong value: a tensor that Mm saved came back with other contents");
}

TEST(TapeTest, HooksThatReturnAnotherLayoutAreAWrongValue) {
  const std::vector<check::Hazard> wrong = hazards_with([](Trial&, const Tensor& tensor) {
    Window window = *tensor->layout.window;
    window.layout.shape.push_back(1);
    window.layout.strides.push_back(1);
    return make_tensor(tensor->storage, {std::make_shared<Window>(window), 0}, tensor->version);
  });
  ASSERT_EQ(wrong.size(), 1u);
  EXPECT_EQ(to_string(wrong[0]),
            "wrong value: a tensor that Mm saved came back with another shape, type or strides");
}

TEST(TapeTest, WhoListensKnowsTheNodeThatSaves) {
  class Names final : public Hooks<Tensor> {
   public:
    explicit Names(Tape& tape) : tape_(tape) {}
    std::unique_ptr<Saved<Tensor>> pack(const Tensor&) override {
      names.emplace_back(tape_.saving_node());
      return nullptr;
    }
    std::vector<std::string> names;

   private:
    Tape& tape_;
  };
  Source s;
  const CodeId forward = s.code(CodeKind::kSegment, "forward");
  const Slot a = s.layer(forward, "Embedding", {s.w}, {s.w});
  s.result(forward, s.layer(forward, "Mm", {a, s.w}, {a, s.w}));
  s.call(forward);
  Trial run(s.program);
  const auto names = std::make_shared<Names>(*run.tape);
  const HooksGuard<SimAutograd> guard(run.tape->autograd(), names);
  run.run();
  EXPECT_EQ(names->names, (std::vector<std::string>{"Embedding", "Mm", "Mm"}));
  EXPECT_EQ(run.tape->saving_node(), "");
}

}  // namespace
}  // namespace ferry::sim
