// The autograd graph of a simulated run: nodes, edges and saved tensors, as PyTorch's.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "formats/program.h"
#include "shared/hooks.h"
#include "sim/tensor.h"

namespace ferry::sim {

struct Node;

// Where a gradient flows: an input of a node, which is one of the node's forward outputs.
struct Edge {
  std::shared_ptr<Node> node;
  std::uint32_t output = 0;
  explicit operator bool() const { return node != nullptr; }
};

// What a slot holds. Either part may be missing.
struct Value {
  Tensor tensor;
  Edge edge;
};

// What autograd keeps of a tensor: whatever the hooks made of it, else the tensor itself.
struct SavedTensor {
  std::unique_ptr<Saved<Tensor>> packed;
  Tensor plain;
  std::uint64_t version_at_save = 0;
  Edge edge;                       // none for the node's own outputs: that would be a cycle
  std::uint32_t own_output = ~0u;  // which of them
  std::uint64_t contents = 0;      // the value at the save, where values are checked
};

struct Node {
  std::string_view name;
  std::uint64_t sequence = 0;  // unique, in the order of making; leaves come last
  StreamId stream{};           // of its forward; its backward runs there
  CodeId body = 0;
  Slot leaf = kNoSlot;  // an accumulator's global
  std::uint32_t outputs = 1;
  std::vector<Edge> next;
  std::vector<SavedTensor> saved;
  bool released = false;

  Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  // Without recursion: a graph may be deep.
  ~Node() {
    std::vector<std::shared_ptr<Node>> dying;
    const auto collect = [&dying](Node& node) {
      for (SavedTensor& entry : node.saved) {
        if (entry.edge.node) dying.push_back(std::move(entry.edge.node));
      }
      for (Edge& edge : node.next) {
        if (edge.node) dying.push_back(std::move(edge.node));
      }
    };
    collect(*this);
    while (!dying.empty()) {
      const std::shared_ptr<Node> last = std::move(dying.back());
      dying.pop_back();
      if (last.use_count() == 1) collect(*last);
    }
  }
};

}  // namespace ferry::sim
