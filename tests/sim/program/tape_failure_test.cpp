// What goes wrong while a program runs is noted as an error, and the next step works.
#include "sim/program/tape.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>

#include "tests/sim/program/tape_rig.h"

namespace ferry::sim {
namespace {

using test::Names;
using test::Source;
using test::Trial;

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

}  // namespace
}  // namespace ferry::sim
