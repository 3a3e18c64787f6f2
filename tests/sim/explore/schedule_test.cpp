// Delays say every order, their text comes back as it was, and bad text says what was expected.
#include "sim/explore/schedule.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <set>
#include <stdexcept>

#include "sim/choices/strategies.h"
#include "tests/sim/support/calls.h"
#include "tests/sim/support/stream_program.h"

namespace ferry::explore {
namespace {

constexpr Range kX{0x1000, 16}, kY{0x1010, 16};

// What parsing the text throws, for a graph of two streams with two kernels each; or its print.
std::string parsed(std::string_view text) {
  test::Calls calls;
  calls.kernel(0, {}, {kX})
      .kernel(1, {}, {kY})
      .record(1, 0)
      .kernel(0, {}, {kX})
      .kernel(1, {}, {kY});
  const OpGraph graph(calls.recording());
  try {
    const Schedule schedule = parse_schedule(graph, text);
    order_of(graph, schedule);
    return to_string(graph, schedule);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
}

TEST(Schedule, TextAndBack) {
  EXPECT_EQ(parsed("-"), "-");
  EXPECT_EQ(parsed("0@1 3@4"), "0@1 3@4");
  EXPECT_EQ(parsed("  0@1   3@4 "), "0@1 3@4");
}

TEST(Schedule, BadTextSaysWhatWasExpected) {
  EXPECT_EQ(parsed(""), "a schedule: expected OP@UNTIL …, or \"-\"");
  EXPECT_EQ(parsed("0@1 3"),
            "schedule, delay 2: \"3\": expected OP@UNTIL, two numbers of ops (41@52)");
  EXPECT_EQ(parsed("0@x"),
            "schedule, delay 1: \"0@x\": expected OP@UNTIL, two numbers of ops (41@52)");
  EXPECT_EQ(parsed("0@2"),
            "schedule, delay 1: \"0@2\": expected ops that touch memory, which #2 is not");
  EXPECT_EQ(parsed("0r@1"),
            "schedule, delay 1: \"0r@1\": expected ops that touch memory, which #0r is not");
  EXPECT_EQ(parsed("3@1"),
            "schedule, delay 1: \"3@1\": expected an op that waits for one issued after it");
  EXPECT_EQ(parsed("0@3"), "#0 cannot wait for #3, which comes after it");
}

TEST(Schedule, CountsInversions) {
  EXPECT_EQ(inversions({0, 1, 2}), 0u);
  EXPECT_EQ(inversions({2, 1, 0}), 3u);
  EXPECT_EQ(inversions({1, 2, 0}), 2u);
}

TEST(Schedule, EveryOrderIsItsDelays) {
  EXPECT_TRUE(rc::check("order -> delays -> text -> delays -> order", [] {
    const auto draws = *rc::gen::resize(80, rc::gen::arbitrary<std::vector<test::Draw>>());
    Recording recording;
    test::make_program(draws, {.accesses = 30}).each([&](const StreamOp& op) { recording(op); });
    const OpGraph graph(recording);
    choices::RandomChoices random(*rc::gen::arbitrary<std::uint64_t>());
    const std::vector<ActionId> order = draw_order(graph, random);
    RC_ASSERT(is_order_of(graph, order));
    const Schedule schedule = schedule_of(order);
    RC_ASSERT(parse_schedule(graph, to_string(graph, schedule)) == schedule);
    RC_ASSERT(order_of(graph, schedule) == order);
    // Fewer delays are a schedule, too.
    Schedule some;
    for (const Delay& delay : schedule) {
      if (random.choose(choices::ChoicePoint::kPoll, 2) == 0) some.push_back(delay);
    }
    RC_ASSERT(is_order_of(graph, order_of(graph, some)));
  }));
}

}  // namespace
}  // namespace ferry::explore
