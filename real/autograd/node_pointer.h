// The pointer types for nodes, which depend on the version of LibTorch: std::shared_ptr up to 2.12,
// and c10::intrusive_ptr from 2.13 on. LibTorch 2.14 and later also calls hooks for each new node.
#pragma once

#include <torch/csrc/autograd/function.h>
#include <torch/version.h>

#include <memory>
#include <utility>

namespace ferry::real {

#if TORCH_VERSION_MINOR >= 13

using NodePointer = c10::intrusive_ptr<torch::autograd::Node>;
template <class Made>
using MadeNode = c10::intrusive_ptr<Made>;

template <class Made, class... Arguments>
MadeNode<Made> make_node(Arguments&&... arguments) {
  return c10::make_intrusive<Made>(std::forward<Arguments>(arguments)...);
}

// A node of Ferry. `release` drops what it holds when the last NodePointer dies. The object itself
// may live longer, because a SavedVariable of one of its outputs remembers the node.
class OwnNode : public torch::autograd::Node {
 public:
  using Node::Node;
  void release_resources() override {
    release();
    Node::release_resources();
  }

 private:
  virtual void release() = 0;
};

// Remembers a node without keeping it alive. Its address is not reused meanwhile.
class RememberedNode {
 public:
  RememberedNode() : node_(NodePointer()) {}
  explicit RememberedNode(const NodePointer& node) : node_(node) {}
  bool is(const NodePointer& other) const { return node_ == c10::weak_intrusive_ptr(other); }

 private:
  c10::weak_intrusive_ptr<torch::autograd::Node> node_;
};

#else

using NodePointer = std::shared_ptr<torch::autograd::Node>;
template <class Made>
using MadeNode = std::shared_ptr<Made>;

template <class Made, class... Arguments>
MadeNode<Made> make_node(Arguments&&... arguments) {
  return MadeNode<Made>(new Made(std::forward<Arguments>(arguments)...),
                        torch::autograd::deleteNode);
}

class OwnNode : public torch::autograd::Node {
 public:
  using Node::Node;

 private:
  virtual void release() = 0;
};

class RememberedNode {
 public:
  RememberedNode() = default;
  explicit RememberedNode(const NodePointer& node) : node_(node) {}
  bool is(const NodePointer& other) const {
    return !node_.owner_before(other) && !other.owner_before(node_);
  }

 private:
  std::weak_ptr<torch::autograd::Node> node_;
};

#endif

// Call it once the node has saved everything (torch.autograd.graph.node_creation_hook).
inline void tell_of_new_node([[maybe_unused]] const NodePointer& node) {
#if TORCH_VERSION_MINOR >= 14
  torch::autograd::fire_node_creation_hooks(node);
#endif
}

}  // namespace ferry::real
