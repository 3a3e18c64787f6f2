#include "real/capture/graph.h"

#include <algorithm>

#include "ferry/capture.h"
#include "real/tensors/torch_error.h"

namespace ferry::real::capture {

std::span<const Output> held_by(const Event& event) {
  if (const auto* const backward = std::get_if<BackwardEvent>(&event)) return backward->roots;
  if (const auto* const segment = std::get_if<SegmentEvent>(&event)) return segment->behind;
  return {};
}

Graph::Graph(const Trace& trace) : trace_(trace) {
  std::vector<NodeNumber> open;
  const auto use = [this](const Output& output) {
    std::uint32_t& count = outputs_[output.node];
    count = std::max(count, output.number + 1);
  };
  for (PackNumber pack = 0; pack < trace.packs.size(); ++pack) {
    const NodeNumber node = trace.packs[pack].node;
    packs_[node].push_back(pack);
    open.push_back(node);
  }
  for (const Event& event : trace.events) {
    for (const Output& output : held_by(event)) {
      use(output);
      open.push_back(output.node);
    }
  }
  while (!open.empty()) {
    const NodeNumber node = open.back();
    open.pop_back();
    if (!nodes_.insert(node).second) continue;
    if (!trace.nodes.contains(node)) {
      throw torch_error(
          CaptureError("saved tensor " + std::to_string(packs_.at(node).front()) +
                       " belongs to a node of which no result was seen: it cannot be captured"));
    }
    for (const Edge& edge : edges(node)) {
      const auto* const output = std::get_if<Output>(&edge);
      if (!output) continue;
      use(*output);
      consumers_[output->node].insert(node);
      open.push_back(output->node);
    }
  }
}

const std::vector<PackNumber>& Graph::packs(NodeNumber node) const {
  static const std::vector<PackNumber> none;
  const auto found = packs_.find(node);
  return found == packs_.end() ? none : found->second;
}

std::uint32_t Graph::outputs(NodeNumber node) const {
  const auto found = outputs_.find(node);
  return found == outputs_.end() ? 1 : found->second;
}

const std::set<NodeNumber>& Graph::consumers(NodeNumber node) const {
  static const std::set<NodeNumber> none;
  const auto found = consumers_.find(node);
  return found == consumers_.end() ? none : found->second;
}

}  // namespace ferry::real::capture
