#include "verify/oracles/asked_nodes.h"

namespace ferry::verify {
namespace {

void add(std::span<const sim::Value> values, std::size_t& tensors, std::size_t& phonies) {
  for (const sim::Value& value : values) ++(value.tensor ? tensors : phonies);
}

std::string text_of(const AskedNode& node) {
  const auto ends = [](std::size_t tensors, std::size_t phonies) {
    return std::to_string(tensors) + " tensors and " + std::to_string(phonies) + " phonies";
  };
  return "nodes from " + ends(node.tensors_in, node.phonies_in) + " to " +
         ends(node.tensors_out, node.phonies_out) + " on device " + std::to_string(node.device) +
         (node.computes ? "'s compute stream" : "'s arrival streams");
}

std::int64_t count_of(const AskedNodeCounts& counts, const AskedNode& node) {
  const auto found = counts.find(node);
  return found == counts.end() ? 0 : found->second;
}

}  // namespace

void AskedNodes::asked(std::span<const sim::Value> inputs, std::span<const sim::Value> outputs,
                       bool needed) {
  if (!needed) {
    ++in_vain_;
    return;
  }
  const StreamId stream = machine_.current_stream();
  AskedNode node;
  node.device = machine_.device_of(stream);
  node.computes = stream == machine_.compute_stream(node.device, 0);
  add(inputs, node.tensors_in, node.phonies_in);
  add(outputs, node.tensors_out, node.phonies_out);
  ++counts_[node];
}

std::string difference(const AskedNodeCounts& made, const AskedNodeCounts& expected) {
  if (made == expected) return "";
  for (const AskedNodeCounts* all : {&expected, &made}) {
    for (const auto& [node, count] : *all) {
      const std::int64_t is = count_of(made, node), must = count_of(expected, node);
      if (is == must) continue;
      return std::to_string(is) + " " + text_of(node) + ", not " + std::to_string(must);
    }
  }
  return "";
}

}  // namespace ferry::verify
