// What the tests of schedules ask of an order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/explore/op_graph.h"

namespace ferry::explore {

// Whether every action is there once, and none runs before one that must come before it.
inline bool is_order_of(const OpGraph& graph, const std::vector<ActionId>& order) {
  if (order.size() != graph.size()) return false;
  std::vector<char> done(graph.size(), 0);
  for (const ActionId id : order) {
    if (id >= graph.size() || done[id]) return false;
    for (const ActionId pred : graph.preds(id)) {
      if (!done[pred]) return false;
    }
    done[id] = 1;
  }
  return true;
}

// Counts the pairs of actions in another order than they were issued in.
inline std::uint64_t inversions(const std::vector<ActionId>& order) {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (std::size_t j = i + 1; j < order.size(); ++j) count += order[i] > order[j] ? 1 : 0;
  }
  return count;
}

}  // namespace ferry::explore
