// Delays say every order, and their text names the ops.
#include "sim/explore/schedule.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <set>
#include <stdexcept>

#include "sim/choices/strategies.h"
#include "tests/sim/explore/orders.h"
#include "tests/sim/support/calls.h"
#include "tests/sim/support/stream_program.h"

namespace ferry::explore {
namespace {

constexpr Range kX{0x1000, 16}, kY{0x1010, 16};

// What a schedule of two streams with two kernels each is called, or why it is none.
std::string said(const Schedule& schedule) {
  test::Calls calls;
  calls.kernel(0, {}, {kX})
      .kernel(1, {}, {kY})
      .record(1, 0)
      .kernel(0, {}, {kX})
      .kernel(1, {}, {kY});
  const OpGraph graph(calls.recording());
  try {
    order_of(graph, schedule);
    return to_string(graph, schedule);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
}

// Actions count what touches memory; the text has the numbers of the ops, of which #2 does not.
TEST(Schedule, ItsTextNamesOps) {
  EXPECT_EQ(said({}), "-");
  EXPECT_EQ(said({{0, 1}, {2, 3}}), "0@1 3@4");
}

TEST(Schedule, NoActionWaitsForOneThatComesAfterIt) {
  EXPECT_EQ(said({{0, 2}}), "#0 cannot wait for #3, which comes after it");
}

TEST(Schedule, EveryOrderIsItsDelays) {
  EXPECT_TRUE(rc::check("order -> delays -> order", [] {
    const auto draws = *rc::gen::resize(80, rc::gen::arbitrary<std::vector<test::Draw>>());
    Recording recording;
    test::make_program(draws, {.accesses = 30}).each([&](const StreamOp& op) { recording(op); });
    const OpGraph graph(recording);
    choices::RandomChoices random(*rc::gen::arbitrary<std::uint64_t>());
    const std::vector<ActionId> order = draw_order(graph, random);
    RC_ASSERT(is_order_of(graph, order));
    const Schedule schedule = schedule_of(order);
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
