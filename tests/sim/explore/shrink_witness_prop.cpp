// A shrunk schedule still shows a wrong value, as plainly, and no delay of it can be spared.
#include "sim/explore/shrink_witness.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "sim/choices/strategies.h"
#include "tests/sim/explore/orders.h"
#include "tests/sim/support/repair.h"
#include "tests/sim/support/stream_program.h"

namespace ferry::explore {
namespace {

TEST(ShrinkWitnessProp, NoDelayCanBeSpared) {
  int shrunk_ones = 0, single = 0;
  EXPECT_TRUE(rc::check("drawn witnesses", [&] {
    const auto draws = *rc::gen::resize(100, rc::gen::arbitrary<std::vector<test::Draw>>());
    Recording recording;
    test::make_program(draws, {.accesses = 30, .cells = 16}).each([&](const StreamOp& op) {
      recording(op);
    });
    const Explorer explorer(recording);
    choices::RandomChoices random(*rc::gen::arbitrary<std::uint64_t>());
    const auto witness = explorer.search(random, 10).witness;
    if (!witness) return;
    const Shrunk shrunk = shrink_witness(explorer, *witness);
    const Schedule& schedule = shrunk.witness.schedule;
    shrunk_ones++;
    single += schedule.size() == 1 ? 1 : 0;
    const auto order = order_of(explorer.graph(), schedule);
    RC_ASSERT(explorer.difference(order, witness->difference.evidence).has_value());
    RC_ASSERT(shrunk.witness.difference.evidence <= witness->difference.evidence);
    RC_ASSERT(inversions(order) <= inversions(order_of(explorer.graph(), witness->schedule)));
    for (std::size_t i = 0; i < schedule.size(); ++i) {
      Schedule others = schedule;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
      RC_ASSERT(!explorer.difference(order_of(explorer.graph(), others),
                                     shrunk.witness.difference.evidence));
    }
  }));
  // One race, one delay: nearly always.
  EXPECT_GT(shrunk_ones, 20);
  EXPECT_GT(single * 10, shrunk_ones * 9);
}

TEST(ShrinkWitness, EndsWithWhatItHas) {
  Recording recording;
  test::make_program(test::draw_program(3), {.accesses = 30}).each([&](const StreamOp& op) {
    recording(op);
  });
  const Explorer explorer(recording);
  choices::RandomChoices random(1);
  const auto witness = explorer.search(random, 100).witness;
  ASSERT_TRUE(witness);
  EXPECT_EQ(shrink_witness(explorer, *witness, 0).witness.schedule, witness->schedule);
  EXPECT_EQ(shrink_witness(explorer, *witness, 3).runs, 3u);
}

}  // namespace
}  // namespace ferry::explore
