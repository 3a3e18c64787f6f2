// Compares the minimum cut of small random graphs with all of their cuts.
#include "plan/min_cut.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "verify/programs/random_program.h"

namespace ferry::plan {
namespace {

struct Drawn {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  int capacity = 0;  // not used if `is_open`: then it is unlimited
  bool is_open = false;
};

// Edges from the source and to the sink have limited capacities, so a limited cut exists.
std::vector<Drawn> draw_edges(choices::Draws& draws, int nodes) {
  std::vector<Drawn> edges;
  const int all = draws.in(1, 12);
  for (int i = 0; i < all; ++i) {
    Drawn edge;
    edge.from = static_cast<std::uint32_t>(draws.in(0, nodes));
    edge.to = static_cast<std::uint32_t>(draws.in(0, nodes));
    if (edge.from == edge.to || edge.from == MinCut::kSink || edge.to == MinCut::kSource) continue;
    edge.is_open = edge.from != MinCut::kSource && edge.to != MinCut::kSink && draws.one_in(3);
    if (!edge.is_open) edge.capacity = draws.in(0, 9);
    edges.push_back(edge);
  }
  return edges;
}

// Returns the value of a cut; 1000 if it cuts an unlimited edge. `before` has a bit for each node
// on the source's side.
int value_of(const std::vector<Drawn>& edges, std::uint32_t before) {
  int value = 0;
  for (const Drawn& edge : edges) {
    const bool is_cut = (before >> edge.from & 1) != 0 && (before >> edge.to & 1) == 0;
    if (is_cut && edge.is_open) return 1'000;
    if (is_cut) value += edge.capacity;
  }
  return value;
}

TEST(MinCutProp, NoCutOfASmallGraphIsLess) {
  int some = 0;
  for (std::uint64_t number = 0; number < 2'000; ++number) {
    choices::Draws draws(31, number);
    const int nodes = draws.in(2, 7);
    const std::vector<Drawn> edges = draw_edges(draws, nodes);
    MinCut graph;
    for (int i = 2; i < nodes; ++i) graph.add_node();
    std::vector<std::size_t> numbers;
    for (const Drawn& edge : edges) numbers.push_back(graph.add_edge(edge.from, edge.to));
    for (int round = 0; round < 2; ++round) {  // the second round has other capacities
      for (std::size_t i = 0; i < edges.size(); ++i) {
        const Drawn& edge = edges[i];
        graph.set(numbers[i], edge.is_open ? MinCut::kUnlimited
                                           : MinCut::Capacity{edge.capacity} * (round + 1));
      }
      int least = 1'000;
      for (std::uint32_t before = 1; before < 1U << nodes; before += 2) {  // with the source
        if ((before >> MinCut::kSink & 1) == 0) least = std::min(least, value_of(edges, before));
      }
      ASSERT_EQ(graph.value(), MinCut::Capacity{least} * (round + 1)) << "graph " << number;
      std::uint32_t before = 0;
      for (std::uint32_t node = 0; node < static_cast<std::uint32_t>(nodes); ++node) {
        before |= static_cast<std::uint32_t>(graph.is_before(node)) << node;
      }
      ASSERT_EQ(value_of(edges, before), least) << "graph " << number;
      some += least > 0;
    }
  }
  EXPECT_GT(some, 500);
}

}  // namespace
}  // namespace ferry::plan
