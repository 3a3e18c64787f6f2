// Implements graph.h: destroys a graph without recursion.
#include "sim/program/graph.h"

#include <utility>

namespace ferry::sim {

namespace {

// The references of nodes that are being destroyed on this thread.
struct Remains {
  std::vector<Edge> edges;
  std::vector<std::vector<SavedTensor>> saved;
};
thread_local Remains* remains = nullptr;

void collect(Node& node) {
  for (Edge& edge : node.next) {
    if (edge) remains->edges.push_back(std::move(edge));
  }
  for (SavedTensor& entry : node.saved) {
    if (entry.edge) remains->edges.push_back(std::move(entry.edge));
  }
  if (!node.saved.empty()) remains->saved.push_back(std::move(node.saved));
}

}  // namespace

Node::~Node() {
  if (remains) {  // the outermost destructor clears up
    collect(*this);
    return;
  }
  Remains mine;
  remains = &mine;
  collect(*this);
  // The newest first: saved tensors may refer to earlier nodes, which the edges still hold.
  while (!mine.saved.empty() || !mine.edges.empty()) {
    if (!mine.saved.empty()) {
      const std::vector<SavedTensor> dying = std::move(mine.saved.back());
      mine.saved.pop_back();
    } else {
      const Edge edge = std::move(mine.edges.back());
      mine.edges.pop_back();
    }
  }
  remains = nullptr;
}

}  // namespace ferry::sim
