// What an operator's kernels allocate: temporaries, some of which go before it ends, and results in
// the order in which it makes them.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/sim/program/tape_rig.h"
#include "tests/sim/support/sizes.h"

namespace ferry::sim {
namespace {

using test::kMiB;
using test::Source;

// Of the operator "two": 4 MiB, which go before the next 4 are taken.
class Memory final : public KernelMemory {
 public:
  explicit Memory(bool last_first) : last_first_(last_first) {}
  bool is_asked(std::string_view op) const override { return op == "two"; }
  bool makes_last_first(std::string_view) const override { return last_first_; }
  std::vector<std::int64_t> workspaces(std::string_view, Layouts) const override { return {}; }
  std::vector<std::int64_t> temporaries(std::string_view, Layouts, Layouts) const override {
    return {4 * kMiB, -1, 4 * kMiB};
  }

 private:
  const bool last_first_;
};

// Kernels' writes, and the peak.
struct Seen final : StreamOpConsumer {
  void operator()(const StreamOp& op) override {
    if (op.kind != StreamOpKind::kKernel) return;
    for (const Range& write : op.writes) writes.push_back(write.address);
  }
  std::vector<std::uint64_t> writes;
};

Seen run(const Memory& memory, std::int64_t& peak) {
  Source s;
  const Slot a = s.slot(0), b = s.slot(0);
  s.add(0, Op{"two", {s.w}, {a, b}, {s.type(), s.type()}, {}, 0, 0, 0, 0});
  check_program(s.program, "test");
  Machine machine(MachineOptions{});
  Seen seen;
  machine.add_consumer(&seen);
  const test::Measured times;
  Tape tape(s.program, machine, times, nullptr, {}, &memory);
  const std::int64_t before = machine.pool(0).stats().allocated_bytes.current;
  tape.run();
  peak = machine.pool(0).stats().allocated_bytes.peak - before;
  tape.drop_frames();
  return seen;
}

TEST(TapeMemoryTest, ATemporaryMayGoBeforeTheNext) {
  std::int64_t peak = 0;
  run(Memory(false), peak);
  EXPECT_EQ(peak, 4 * kMiB + 2 * test::kBytes);
}

TEST(TapeMemoryTest, ResultsAreMadeInTheOperatorsOrder) {
  std::int64_t peak = 0;
  const Seen first = run(Memory(false), peak);
  ASSERT_EQ(first.writes.size(), 2u);
  EXPECT_LT(first.writes[0], first.writes[1]);
  const Seen last = run(Memory(true), peak);
  ASSERT_EQ(last.writes.size(), 2u);
  EXPECT_GT(last.writes[0], last.writes[1]);
}

}  // namespace
}  // namespace ferry::sim
