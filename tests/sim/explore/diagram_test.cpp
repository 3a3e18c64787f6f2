// One golden screen, and the bounds of every other one.
#include "sim/explore/diagram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "tests/sim/support/calls.h"
#include "tests/sim/support/stream_program.h"

namespace ferry::explore {
namespace {

constexpr Range kX{0x1000, 16}, kPinned{check::kHostBase, 16};

std::string drawn(const test::Calls& calls) {
  const Explorer explorer(calls.recording());
  const check::Hazard& hazard = calls.hazards().at(0);
  return diagram(explorer, hazard, *explorer.confirm(hazard).witness);
}

TEST(Diagram, AnEvictionThatDoesNotWait) {
  test::Calls calls;
  calls.alloc(0, kX).kernel(0, {}, {kX}, "mm").record(1, 0).wait(1, 1);
  calls.copy(1, kX, kPinned, Step::kOffload).free(kX).alloc(0, kX).kernel(0, {}, {kX}, "relu");
  EXPECT_EQ(
      drawn(calls),
      R"(`evict` missing: `offload` #4 (stream 1) → relu #7 (stream 0): reuse of 16 bytes at 0x1000

         stream 0                      stream 1                      the host
#1       mm
#4                                     A `offload`
#5                                     ╎                             free
#6                                     ╎                             alloc
         ◀╌╌╌╌╌╌╌╌╌╌ no edge ╌╌╌╌╌╌╌╌╌╌╯
#7       B relu

schedule 4@7: A is late, and runs after B
seen in it: `offload` #4 reads 16 bytes at 0x1000: what relu #7 wrote, not what mm #1 wrote
to order them: take the step `evict`
)");
}

TEST(Diagram, ARecordThatCameTooEarly) {
  test::Calls calls;
  calls.record(7, 0).kernel(0, {}, {kX}, "producer").wait(7, 1).kernel(1, {kX}, {}, "consumer");
  EXPECT_EQ(
      drawn(calls),
      R"(an edge missing: producer #1 (stream 0) → consumer #3 (stream 1): read after write of 16 bytes at
    0x1000

         stream 0                                     stream 1
#0       record (event 7)
#1       A producer
#2       ╎                                            wait (event 7)
         ╰╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌ no edge ╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌▶
#3                                                    B consumer

schedule 1@3: A is late, and runs after B
seen in it: consumer #3 reads 16 bytes at 0x1000: undefined, not what producer #1 wrote
to order them: record an event on stream 0 after #1, and wait for it on stream 1 before #3
)");
}

TEST(Diagram, FitsAScreen) {
  int drawings = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Recording recording;
    check::HappensBefore checker;
    test::make_program(test::draw_program(seed), {.accesses = 40}).each([&](StreamOp op) {
      const std::string name =
          "a_kernel_with_quite_a_long_name_as_templates_have_" + std::string(op.name);
      op.name = name;
      recording(op);
      checker(op);
    });
    const Explorer explorer(recording);
    for (const check::Hazard& hazard : checker.hazards()) {
      const Confirmation c = explorer.confirm(hazard);
      if (!c.witness) continue;
      const std::string text = diagram(explorer, hazard, *c.witness);
      drawings++;
      EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 24) << text;
      EXPECT_NE(text.find("A a_kernel"), std::string::npos) << text;
      EXPECT_NE(text.find("B a_kernel"), std::string::npos) << text;
      EXPECT_NE(text.find(" no edge "), std::string::npos) << text;
      std::istringstream lines(text);
      for (std::string line; std::getline(lines, line);) {
        const auto wide =
            std::count_if(line.begin(), line.end(), [](char ch) { return (ch & 0xc0) != 0x80; });
        EXPECT_LE(wide, 100) << text;
      }
    }
  }
  EXPECT_GT(drawings, 100);
}

}  // namespace
}  // namespace ferry::explore
