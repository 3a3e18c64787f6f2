// The autograd graph of a simulated run: nodes, edges and saved tensors, as in PyTorch. The tape
// builds it, and graph_engine.h runs backward over it. Edges own the nodes that they lead to, so
// the graph lives as long as somebody holds one of its ends.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "formats/program.h"
#include "shared/seam/hooks.h"
#include "sim/gpu/tensor.h"

namespace ferry::sim {

struct Node;

// The target of a gradient: a node, and the number of its forward output that has this gradient.
struct Edge {
  std::shared_ptr<Node> node;
  std::uint32_t output = 0;
  explicit operator bool() const { return node != nullptr; }
};

// The content of a slot. Either part may be missing.
struct Value {
  Tensor tensor;
  Edge edge;
};

// A tensor as autograd saves it: the result of the hooks or, without hooks, the tensor itself.
struct SavedTensor {
  std::unique_ptr<Saved<Tensor>> packed;
  Tensor plain;
  std::uint64_t version_at_save = 0;
  Edge edge;                             // none for the node's own outputs: that would be a cycle
  std::uint32_t own_output = ~0u;        // the output's index
  std::uint64_t contents = 0;            // the value when saved, if values are checked
  std::shared_ptr<const Window> window;  // the window when saved, likewise
};

// The sequence of every accumulator, as in LibTorch: ready accumulators run first.
inline constexpr std::uint64_t kLeafSequence = ~std::uint64_t{0};

// The backward of a node that host code made, instead of a body. It takes the saved inputs and the
// gradients of the outputs, and returns the gradients of the inputs.
using HostBackward = std::function<std::vector<Value>(std::vector<Value>, std::vector<Value>)>;

struct Node {
  std::string_view name;
  std::uint64_t id = 0;        // unique, ascending in order of creation
  std::uint64_t sequence = 0;  // ascending on its thread only, as in LibTorch
  StreamId stream{};           // the forward's stream; the backward runs there
  CodeId body = 0;
  std::uint32_t place = 0;       // Machine::place() in forward; its backward counts there too
  Slot leaf = kNoSlot;           // the global, if it is an accumulator
  std::shared_ptr<Value> total;  // or where a detached leaf accumulates
  HostBackward host_backward;
  std::vector<TensorLayout> output_layouts;  // layouts, if the host's code made the node
  std::uint32_t outputs = 1;
  std::vector<Edge> next;
  std::vector<SavedTensor> saved;
  bool released = false;
  // From the engine's latest count: which count it was, and how many gradients come here.
  std::uint64_t counted = 0;
  int dependencies = 0;

  Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  // Not recursive, because a graph may be deep and saved tensors may own further nodes.
  ~Node();

  bool is_leaf() const { return leaf != kNoSlot || total; }
};

}  // namespace ferry::sim

template <>
struct ferry::Exceptions<ferry::sim::Value> : ferry::Exceptions<void> {};
