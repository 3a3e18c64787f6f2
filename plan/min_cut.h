// The least cut of a graph with a source and a sink, by Dinic's algorithm (1970): each phase finds
// the shortest ways by breadth, and fills them by depth. A capacity may be unlimited.
//
// The shape stays and the capacities change: whoever asks many times adds the edges once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ferry::plan {

class MinCut {
 public:
  __extension__ typedef __int128 Capacity;

  static constexpr std::uint32_t kSource = 0;
  static constexpr std::uint32_t kSink = 1;
  static constexpr Capacity kUnlimited = Capacity{1} << 120;

  // Nodes are numbered; the source and the sink are there.
  std::uint32_t add_node();
  // Its number, by which its capacity is set.
  std::size_t add_edge(std::uint32_t from, std::uint32_t to);
  void set(std::size_t edge, Capacity capacity) { capacities_[edge] = capacity; }

  // Some way from the source to the sink must be limited.
  Capacity value();
  // Of the last value: true on the source's side of the cut.
  bool is_before(std::uint32_t node) const { return depths_[node] != kFar; }

 private:
  static constexpr std::uint32_t kFar = ~std::uint32_t{0};

  struct Arc {
    std::uint32_t to = 0;
    std::size_t back = 0;  // that of the other direction, in arcs_
    Capacity left = 0;
  };

  void lay_out();
  bool reaches();
  Capacity fill();

  std::vector<std::uint32_t> from_, to_;  // by edge
  std::vector<Capacity> capacities_;
  std::uint32_t nodes_ = 2;
  std::vector<Arc> arcs_;            // by node that they leave
  std::vector<std::size_t> first_;   // arc of a node; of one past the last: all
  std::vector<std::size_t> arc_of_;  // by edge
  std::vector<std::size_t> next_;    // by node: the arc to try next
  std::vector<std::uint32_t> depths_;
  std::vector<std::uint32_t> queue_;
};

}  // namespace ferry::plan
