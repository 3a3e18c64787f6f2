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
  Edge edge;                             // none for the node's own outputs: that would be a cycle
  std::uint32_t own_output = ~0u;        // which of them
  std::uint64_t contents = 0;            // the value at the save, where values are checked
  std::shared_ptr<const Window> window;  // likewise
};

// Of every accumulator, as in LibTorch: of what is ready, they run first.
inline constexpr std::uint64_t kLeafSequence = ~std::uint64_t{0};

// A node that is a function's of the host, instead of a body: given the saved inputs and the
// outputs' gradients, it gives the inputs' gradients.
using HostBackward = std::function<std::vector<Value>(std::vector<Value>, std::vector<Value>)>;

struct Node {
  std::string_view name;
  std::uint64_t id = 0;        // unique, in the order of making
  std::uint64_t sequence = 0;  // in the order of making on its thread alone, as LibTorch numbers
  StreamId stream{};           // of its forward; its backward runs there
  CodeId body = 0;
  Slot leaf = kNoSlot;           // an accumulator's global
  std::shared_ptr<Value> total;  // or what a detached leaf accumulates
  HostBackward host_backward;
  std::vector<TensorLayout> output_layouts;  // of a host function's
  std::uint32_t outputs = 1;
  std::vector<Edge> next;
  std::vector<SavedTensor> saved;
  bool released = false;

  Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  // Without recursion: a graph may be deep, and what is saved may own further nodes.
  ~Node();

  bool is_leaf() const { return leaf != kNoSlot || total; }
};

}  // namespace ferry::sim
