// A step that needs more than the simulator has ends with an error that names the op's line; the
// main code goes on no further, for all of it would end there.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "formats/limits.h"
#include "tests/sim/program/tape_rig.h"

namespace ferry::sim {
namespace {

using test::Source;
using test::Trial;

void expect_ended(const Trial& run, std::uint32_t line, const std::string& message) {
  ASSERT_EQ(run.tape->errors().size(), 1u);
  const ProgramError& error = run.tape->errors()[0];
  EXPECT_TRUE(error.beyond_limits);
  EXPECT_EQ(error.line, line);
  EXPECT_NE(error.message.find(message), std::string::npos) << error.message;
}

// Two storages of eight TiB: the second call is not even begun.
TEST(TapeLimitsTest, AddressesEnd) {
  Source s;
  const CodeId segment = s.code(CodeKind::kSegment, "large");
  const TypeId large = s.Builder::type({limits::kStorageBytes / 2});
  s.op(segment, "first", {s.w}, large);
  s.op(segment, "second", {s.w}, large);
  s.program.codes[segment].statements[1].line = 77;
  s.add(0, Call{segment, {}, {}});
  s.add(0, Call{segment, {}, {}});
  Trial run(s.program);
  run.run();
  expect_ended(run, 77, "no addresses left");
  EXPECT_EQ(run.log.kernels(), test::Names{"first"});
}

// Few codes, run again and again by backwards through one graph: its size says nothing of that.
TEST(TapeLimitsTest, WorkEnds) {
  Source s;
  const CodeId body = s.code(CodeKind::kBody, "Backward");
  s.argument(body);
  s.result(body, s.op(body, "grad", {}, s.type()));
  const CodeId segment = s.code(CodeKind::kSegment, "forward");
  s.result(segment, s.layer(segment, "a", {s.w}, {}, body));
  const Slot root = s.call(segment);
  for (int i = 0; i < 300; ++i) s.backward(root, true);
  MachineOptions options;
  options.work_most = 1000;
  Trial run(s.program, options);
  run.run();
  expect_ended(run, 0, "the codes of a step name at most");
}

TEST(TapeLimitsTest, TimeEnds) {
  Source s;
  for (int i = 0; i < 3; ++i) s.op(0, "slow", {s.w}, s.type());
  for (std::uint32_t i = 0; i < 3; ++i) s.program.codes[0].statements[i].line = 10 + i;
  class Slow final : public KernelTimes {
    Time op_ns(const Op&, DType) const override { return limits::kTimeNs / 2; }
  } slow;
  Machine machine{MachineOptions{}};
  Tape tape(s.program, machine, slow, nullptr);
  tape.run();
  ASSERT_EQ(tape.errors().size(), 1u);
  EXPECT_EQ(tape.errors()[0].line, 12u);
  EXPECT_TRUE(tape.errors()[0].beyond_limits);
}

}  // namespace
}  // namespace ferry::sim
