// Each strategy draws orders of a device's actions; every order is drawn once where all are asked
// for.
#include <gtest/gtest.h>

#include <set>

#include "sim/choices/strategies.h"
#include "sim/explore/explorer.h"
#include "tests/sim/explore/orders.h"
#include "tests/sim/support/calls.h"

namespace ferry::explore {
namespace {

constexpr Range kX{0x1000, 16};

// Kernels on streams that nothing orders.
test::Calls streams(const std::vector<int>& kernels) {
  test::Calls calls;
  for (std::uint32_t stream = 0; stream < kernels.size(); ++stream) {
    for (int i = 0; i < kernels[stream]; ++i) calls.kernel(stream, {kX}, {});
  }
  return calls;
}

std::size_t orders(const test::Calls& calls) {
  const OpGraph graph(calls.recording());
  choices::Enumeration all({});
  std::set<std::vector<ActionId>> seen;
  std::size_t drawn = 0;
  do {
    choices::EnumeratedChoices every(all);
    const std::vector<ActionId> order = draw_order(graph, every);
    EXPECT_TRUE(is_order_of(graph, order));
    seen.insert(order);
    drawn++;
  } while (all.next());
  EXPECT_EQ(seen.size(), drawn);
  return drawn;
}

TEST(DrawOrder, EveryOrderOnce) {
  EXPECT_EQ(orders(streams({4})), 1u);
  EXPECT_EQ(orders(streams({3, 3})), 20u);           // 6! / 3! 3!
  EXPECT_EQ(orders(streams({2, 2, 2})), 90u);        // 6! / 2! 2! 2!
  EXPECT_EQ(orders(streams({3, 3, 2, 2})), 25200u);  // 10! / 3! 3! 2! 2!
}

TEST(DrawOrder, ACapEndsTheSearch) {
  const test::Calls calls = streams({3, 3});
  const Explorer explorer(calls.recording());
  EXPECT_TRUE(explorer.search_all(20).complete);
  EXPECT_FALSE(explorer.search_all(19).complete);
  EXPECT_EQ(explorer.search_all(19).orders, 19u);
}

TEST(DrawOrder, EqualSeedsDrawEqualOrders) {
  const test::Calls calls = streams({5, 5, 5});
  const OpGraph graph(calls.recording());
  choices::RandomChoices a(7), b(7), c(8);
  const auto order = draw_order(graph, a);
  EXPECT_EQ(draw_order(graph, b), order);
  EXPECT_NE(draw_order(graph, c), order);
  // Every compiler draws this one.
  EXPECT_EQ(order, (std::vector<ActionId>{5, 6, 10, 0, 7, 11, 8, 1, 12, 13, 2, 9, 14, 3, 4}));
}

// Without changes PCT runs one actor to its end, then the next.
TEST(DrawOrder, PctChangesActorsAsOftenAsItMay) {
  const test::Calls calls = streams({5, 5, 5});
  const OpGraph graph(calls.recording());
  for (const unsigned changes : {0u, 1u, 3u}) {
    std::set<std::vector<ActionId>> seen;
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      choices::PctChoices pct(seed, graph.size(), changes);
      const auto order = draw_order(graph, pct);
      ASSERT_TRUE(is_order_of(graph, order));
      seen.insert(order);
      unsigned switches = 0;
      for (std::size_t i = 1; i < order.size(); ++i) {
        switches += graph[order[i]].actor != graph[order[i - 1]].actor ? 1 : 0;
      }
      EXPECT_LE(switches, 2 + changes);
    }
    EXPECT_GE(seen.size(), changes == 0 ? 6u : 20u);  // 3! orders of the actors
  }
}

TEST(DrawOrder, IsReplayed) {
  const test::Calls calls = streams({5, 5, 5});
  const OpGraph graph(calls.recording());
  choices::RandomChoices random(7);
  const auto order = draw_order(graph, random);
  choices::ReplayedChoices replayed(random.deviations());
  EXPECT_EQ(draw_order(graph, replayed), order);
}

}  // namespace
}  // namespace ferry::explore
