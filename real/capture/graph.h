// The part of a step's graph that a program contains: the nodes that backward runs, the nodes that
// save something, the nodes whose results are arguments of a checkpoint (which holds them), and the
// nodes behind all these. Other nodes are left out.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "real/capture/trace.h"

namespace ferry::real::capture {

// Returns the outputs from which a backward starts, or those that a checkpoint got as arguments.
std::span<const Output> held_by(const Event& event);

class Graph {
 public:
  // Throws CaptureError if a node saved something but was never seen in the graph.
  explicit Graph(const Trace& trace);

  const std::set<NodeNumber>& nodes() const { return nodes_; }
  // Returns the packs in the order of packing.
  const std::vector<PackNumber>& packs(NodeNumber node) const;
  const std::string& name(NodeNumber node) const { return trace_.nodes.at(node).name; }
  // Returns all edges, including those that lead nowhere.
  const std::vector<Edge>& edges(NodeNumber node) const { return trace_.nodes.at(node).edges; }
  // Returns the number of its outputs in use, at least 1.
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
