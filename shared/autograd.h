// The seam, second half: what the core asks of autograd.
//
// A graph task is one call of backward, known by an integer that is never reused (an address would
// be). Tasks nest, and on one thread they need not form a stack. A handle is copied freely.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>

#include "shared/hooks.h"

namespace ferry {

enum class GraphTaskId : std::int64_t { kNone = -1 };
enum class NodeId : std::uint64_t { kNone = 0 };

template <class A>
concept Autograd = requires(A autograd, std::function<void()> callback,
                            HookStack<typename A::Tensor> hooks) {
  requires std::copyable<A>;

  // Of the calling thread; kNone outside a backward.
  { autograd.graph_task() } -> std::same_as<GraphTaskId>;
  // The node that the calling thread runs for that task. Not reused within the task.
  { autograd.node() } -> std::same_as<NodeId>;

  // Runs once, when the current node has run and the tensors it unpacked are dropped; not where it
  // threw. An exception from it fails the backward.
  { autograd.after_node(callback) } -> std::same_as<void>;
  // Runs once, when the current graph task ends, *whether it succeeds or fails*. (LibTorch's own
  // final callbacks do not run after a failure.) Must not throw.
  { autograd.after_task(callback) } -> std::same_as<void>;

  // The slot that travels to the engine's threads with the graph task.
  { autograd.hooks() } -> std::same_as<HookStack<typename A::Tensor>>;
  // While it lives, the slot of the constructing thread holds these; then what it held before.
  requires std::constructible_from<typename A::HooksScope, A, HookStack<typename A::Tensor>>;
};

}  // namespace ferry
