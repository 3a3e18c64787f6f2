#include "plan/min_cut.h"

#include <algorithm>

namespace ferry::plan {

std::uint32_t MinCut::add_node() { return nodes_++; }

std::size_t MinCut::add_edge(std::uint32_t from, std::uint32_t to) {
  from_.push_back(from);
  to_.push_back(to);
  capacities_.push_back(0);
  arcs_.clear();
  return from_.size() - 1;
}

// Lays out the arcs: those of a node are consecutive, in the order in which its edges were added.
void MinCut::lay_out() {
  first_.assign(nodes_ + 1, 0);
  for (std::size_t e = 0; e < from_.size(); ++e) {
    ++first_[from_[e] + 1];
    ++first_[to_[e] + 1];
  }
  for (std::size_t n = 0; n < nodes_; ++n) first_[n + 1] += first_[n];
  arcs_.resize(2 * from_.size());
  arc_of_.resize(from_.size());
  std::vector<std::size_t> next(first_.begin(), first_.end() - 1);
  for (std::size_t e = 0; e < from_.size(); ++e) {
    const std::size_t there = next[from_[e]]++, back = next[to_[e]]++;
    arcs_[there] = {to_[e], back, 0};
    arcs_[back] = {from_[e], there, 0};
    arc_of_[e] = there;
  }
}

bool MinCut::reaches() {
  depths_.assign(nodes_, kFar);
  depths_[kSource] = 0;
  queue_.assign(1, kSource);
  for (std::size_t at = 0; at < queue_.size(); ++at) {
    const std::uint32_t node = queue_[at];
    for (std::size_t a = first_[node]; a < first_[node + 1]; ++a) {
      const Arc& arc = arcs_[a];
      if (arc.left == 0 || depths_[arc.to] != kFar) continue;
      depths_[arc.to] = depths_[node] + 1;
      queue_.push_back(arc.to);
    }
  }
  return depths_[kSink] != kFar;
}

// Fills one path at a time. A node from which no path reaches the sink is not tried again in this
// phase.
MinCut::Capacity MinCut::fill() {
  Capacity filled = 0;
  next_.assign(first_.begin(), first_.end() - 1);
  std::vector<std::size_t> way;
  for (std::uint32_t node = kSource;;) {
    if (node == kSink) {
      Capacity least = kUnlimited;
      for (const std::size_t a : way) least = std::min(least, arcs_[a].left);
      std::size_t full = way.size();
      for (std::size_t i = way.size(); i-- > 0;) {
        arcs_[way[i]].left -= least;
        arcs_[arcs_[way[i]].back].left += least;
        if (arcs_[way[i]].left == 0) full = i;
      }
      filled += least;
      node = arcs_[arcs_[way[full]].back].to;
      way.resize(full);
      continue;
    }
    std::size_t& a = next_[node];
    while (a < first_[node + 1] &&
           (arcs_[a].left == 0 || depths_[arcs_[a].to] != depths_[node] + 1)) {
      ++a;
    }
    if (a < first_[node + 1]) {
      way.push_back(a);
      node = arcs_[a].to;
    } else if (way.empty()) {
      return filled;
    } else {
      node = arcs_[arcs_[way.back()].back].to;
      way.pop_back();
      ++next_[node];
    }
  }
}

MinCut::Capacity MinCut::value() {
  if (arcs_.empty()) lay_out();
  for (Arc& arc : arcs_) arc.left = 0;
  for (std::size_t e = 0; e < from_.size(); ++e) arcs_[arc_of_[e]].left = capacities_[e];
  Capacity value = 0;
  while (reaches()) value += fill();
  return value;
}

}  // namespace ferry::plan
