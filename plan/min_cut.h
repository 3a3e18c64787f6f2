// The minimum cut of a directed graph, by Dinic's algorithm (1970): each phase finds the shortest
// paths by breadth-first search, and fills them by depth-first search. A capacity may be unlimited.
//
// A caller adds the nodes and edges once, and may then change capacities and ask for the value many
// times: recompute_cuts.h tries many prices on one graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ferry::plan {

class MinCut {
 public:
  __extension__ typedef __int128 Capacity;

  static constexpr std::uint32_t kSource = 0;  // the source's node number
  static constexpr std::uint32_t kSink = 1;    // the sink's node number
  static constexpr Capacity kUnlimited = Capacity{1} << 120;

  // Returns the new node's number. The source and the sink always exist.
  std::uint32_t add_node();
  // Returns the edge's number, for `set`. Its capacity is 0 at first.
  std::size_t add_edge(std::uint32_t from, std::uint32_t to);
  void set(std::size_t edge, Capacity capacity) { capacities_[edge] = capacity; }

  // Computes the value of the minimum cut. Every path from the source to the sink must have an edge
  // with a limited capacity.
  Capacity value();
  // True if the node is on the source's side of the cut that `value` found last.
  bool is_before(std::uint32_t node) const { return depths_[node] != kFar; }

 private:
  static constexpr std::uint32_t kFar = ~std::uint32_t{0};  // the depth of an unreachable node

  struct Arc {
    std::uint32_t to = 0;
    std::size_t back = 0;  // the index in arcs_ of the opposite arc
    Capacity left = 0;     // residual capacity
  };

  void lay_out();
  bool reaches();
  Capacity fill();

  std::vector<std::uint32_t> from_, to_;  // by edge
  std::vector<Capacity> capacities_;
  std::uint32_t nodes_ = 2;
  std::vector<Arc> arcs_;            // sorted by the node that they leave
  std::vector<std::size_t> first_;   // by node: its first arc; the last entry is the end
  std::vector<std::size_t> arc_of_;  // by edge
  std::vector<std::size_t> next_;    // by node: the arc to try next
  std::vector<std::uint32_t> depths_;
  std::vector<std::uint32_t> queue_;
};

}  // namespace ferry::plan
