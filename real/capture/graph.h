// The part of a step's graph that a program has: the nodes that backward runs, those that save
// something, those whose results a checkpoint was handed (it holds them), and what lies behind
// these. All others (what nobody differentiates) are left out.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "real/capture/trace.h"

namespace ferry::real::capture {

// Where a backward starts, or what a checkpoint was handed.
std::span<const Output> held_by(const Event& event);

class Graph {
 public:
  // Throws CaptureError where a node saved something that was never seen in the graph.
  explicit Graph(const Trace& trace);

  const std::set<NodeNumber>& nodes() const { return nodes_; }
  // In the order of packing.
  const std::vector<PackNumber>& packs(NodeNumber node) const;
  const std::string& name(NodeNumber node) const { return trace_.nodes.at(node).name; }
  // All edges, those that lead nowhere as well.
  const std::vector<Edge>& edges(NodeNumber node) const { return trace_.nodes.at(node).edges; }
  // How many of its outputs are used; at least 1.
  std::uint32_t outputs(NodeNumber node) const;
  const std::set<NodeNumber>& consumers(NodeNumber node) const;

 private:
  const Trace& trace_;
  std::set<NodeNumber> nodes_;
  std::map<NodeNumber, std::vector<PackNumber>> packs_;
  std::map<NodeNumber, std::uint32_t> outputs_;
  std::map<NodeNumber, std::set<NodeNumber>> consumers_;
};

}  // namespace ferry::real::capture
