// The autograd graph of a simulated run: nodes, edges and saved tensors, as PyTorch's.
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

// The target of a gradient: an input of a node, which is one of the node's forward outputs.
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

// A tensor as autograd saves it: what the hooks returned, else the tensor itself.
struct SavedTensor {
  std::unique_ptr<Saved<Tensor>> packed;
  Tensor plain;
  std::uint64_t version_at_save = 0;
  Edge edge;                             // none for the node's own outputs: that would be a cycle
  std::uint32_t own_output = ~0u;        // the output's index
  std::uint64_t contents = 0;            // the value when saved, if values are checked
  std::shared_ptr<const Window> window;  // the window when saved, likewise
};

// The number of every accumulator, as in LibTorch: ready accumulators run first.
inline constexpr std::uint64_t kLeafSequence = ~std::uint64_t{0};

// The backward of a node that the host's code made, instead of a body: takes the saved inputs and
// the outputs' gradients, returns the inputs' gradients.
using HostBackward = std::function<std::vector<Value>(std::vector<Value>, std::vector<Value>)>;

struct Node {
  std::string_view name;
  std::uint64_t id = 0;        // unique, ascending in order of creation
  std::uint64_t sequence = 0;  // ascending on its thread only, as in LibTorch
  StreamId stream{};           // the forward's stream; the backward runs there
  CodeId body = 0;
  std::uint32_t place = 0;       // Machine::place() in forward, where its backward counts, too
  Slot leaf = kNoSlot;           // the global of an accumulator
  std::shared_ptr<Value> total;  // or where a detached leaf accumulates
  HostBackward host_backward;
  std::vector<TensorLayout> output_layouts;  // layouts, if the host's code made the node
  std::uint32_t outputs = 1;
  std::vector<Edge> next;
  std::vector<SavedTensor> saved;
  bool released = false;
  // Of the engine's latest count of gradients that came here.
  std::uint64_t counted = 0;
  int dependencies = 0;

  Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  // Not recursive: a graph may be deep, and saved tensors may own further nodes.
  ~Node();

  bool is_leaf() const { return leaf != kNoSlot || total; }
};

}  // namespace ferry::sim

template <>
struct ferry::Exceptions<ferry::sim::Value> : ferry::Exceptions<void> {};
