// How LibTorch holds the nodes of its graph: by std::shared_ptr up to 2.12, by c10::intrusive_ptr
// from 2.13 on. Since 2.14 it also tells who asked of every node that is made.
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

// A node of ours. What it holds goes with its last NodePointer: a SavedVariable of an output
// remembers the node, which is destroyed with the last that does.
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

// A node that is remembered and not kept. Its address is no other's meanwhile.
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

// Once the node has saved all that it saves (torch.autograd.graph.node_creation_hook).
inline void tell_of_new_node([[maybe_unused]] const NodePointer& node) {
#if TORCH_VERSION_MINOR >= 14
  torch::autograd::fire_node_creation_hooks(node);
#endif
}

}  // namespace ferry::real
