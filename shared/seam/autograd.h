// The seam, second half: what the core asks of autograd.
//
// A graph task is one call of backward, known by an integer that is never reused (an address would
// be). Tasks nest, and on one thread they need not form a stack. A handle is copied freely.
//
// Offloading asks for Autograd; recomputing asks for more, RecomputingAutograd, and a pipeline for
// more than that, PipelineAutograd.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "shared/seam/hooks.h"

namespace ferry {

enum class GraphTaskId : std::int64_t { kNone = -1 };
enum class NodeId : std::uint64_t { kNone = 0 };
enum class ThreadId : std::uint64_t {};
// What a backward is given for an output to which no gradient came.
enum class AbsentGradient : std::uint8_t { kZeros, kNone };

template <class A>
concept Autograd = requires(A autograd, std::function<void()> callback,
                            HookStack<typename A::Tensor> hooks) {
  requires std::copyable<A>;

  // The calling thread's graph task; kNone outside a backward.
  { autograd.graph_task() } -> std::same_as<GraphTaskId>;
  // The node that the calling thread runs for that task. Not reused within the task.
  { autograd.node() } -> std::same_as<NodeId>;

  // Runs the callback once, when the current node has run and its unpacked tensors are dropped; not
  // if the node threw. If the callback throws, the backward fails.
  { autograd.after_node(callback) } -> std::same_as<void>;
  // Runs the callback once, when the current graph task ends, *whether it succeeds or fails*.
  // (LibTorch's own final callbacks do not run after a failure.) It must not throw.
  { autograd.after_task(callback) } -> std::same_as<void>;

  // The slot that travels to the engine's threads with the graph task.
  { autograd.hooks() } -> std::same_as<HookStack<typename A::Tensor>>;
  // While it lives, the constructing thread's slot holds these hooks; then the previous ones.
  requires std::constructible_from<typename A::HooksScope, A, HookStack<typename A::Tensor>>;
};

// Scopes are neither copied nor moved, and end on their thread in the reverse order of their
// making.
template <class A>
concept RecomputingAutograd = Autograd<A> &&
    requires(A autograd, const typename A::Value value, typename A::SavedValue saved,
             std::span<const typename A::Value> values, const typename A::Ambient ambient,
             const typename A::OpLog ops, std::vector<typename A::Value> outputs,
             std::function<std::vector<typename A::Value>(std::vector<typename A::Value>,
                                                          std::vector<typename A::Value>)>
                 backward,
             bool yes) {
  // The argument and result type of functions: a tensor and its place in the graph. Default: none.
  requires std::copyable<typename A::Value> && std::default_initializable<typename A::Value>;
  // A value saved as a node saves its inputs: packed by the innermost hooks, or else with
  // its version, which unpacking checks. The unpacked value has its place in the graph
  // again.
  requires std::movable<typename A::SavedValue>;
  { autograd.save(value) } -> std::same_as<typename A::SavedValue>;
  { saved.unpack() } -> std::same_as<typename A::Value>;

  // The calling thread's id; not reused while a graph task that the thread works for is running.
  { autograd.thread() } -> std::same_as<ThreadId>;

  { autograd.grad_mode() } -> std::same_as<bool>;
  requires std::constructible_from<typename A::GradModeScope, A, bool>;

  // The state that ops depend on beside their inputs: autocast and the like; with `true` also the
  // state of the random generators, of the host and of the devices that hold `values`.
  { autograd.ambient(values, yes) } -> std::same_as<typename A::Ambient>;
  // Call it after forward: throws if the state could not be captured after all.
  { autograd.check(ambient) } -> std::same_as<void>;
  // While it lives, ops see that state; afterwards the state (also the generators') is as
  // before.
  requires std::constructible_from<typename A::AmbientScope, A, typename A::Ambient>;

  // While it lives, records the ops that the calling thread runs.
  requires std::constructible_from<typename A::OpLog, A>;
  { ops.names() } -> std::same_as<std::vector<std::string>>;

  // The reentrant variant needs the rest.

  { autograd.requires_grad(value) } -> std::same_as<bool>;
  // A leaf with the same tensor, that requires grad where `value` does.
  { autograd.detach(value) } -> std::same_as<typename A::Value>;
  // Runs a graph task inside the current one (or on its own) that accumulates in leaves, from roots
  // with their gradients; an absent gradient means 1, for a scalar.
  { autograd.backward(values, values) } -> std::same_as<void>;
  // The gradient accumulated in a leaf; none if there is none.
  { autograd.gradient(value) } -> std::same_as<typename A::Value>;
  // True if every task around the current node accumulates in leaves (no `.grad()`, no inputs).
  { autograd.checkpoint_valid() } -> std::same_as<bool>;
  // Makes `outputs`, which have no graph, the outputs of a node with these inputs, which it
  // saves. Its backward is given the inputs as they were saved, and the outputs' gradients (for one
  // to which none came what AbsentGradient says), and gives the inputs' gradients. Without grad
  // mode, or where no input requires grad, there is no node.
  {
    autograd.function(values, outputs, backward, AbsentGradient::kZeros)
    } -> std::same_as<std::vector<typename A::Value>>;
};

// Pipelines need more: nodes of their own, and values without bytes that carry an order.
template <class A>
concept PipelineAutograd = RecomputingAutograd<A> &&
    requires(A autograd, const typename A::Value value, const typename A::Tensor tensor,
             std::span<const typename A::Value> values, std::vector<typename A::Value> outputs,
             std::function<std::vector<typename A::Value>(std::vector<typename A::Value>)> backward,
             bool yes) {
  // True if there is a tensor; that tensor, without its graph; and a leaf that holds it.
  { autograd.exists(value) } -> std::same_as<bool>;
  { autograd.tensor(value) } -> std::same_as<typename A::Tensor>;
  { autograd.leaf(tensor, yes) } -> std::same_as<typename A::Value>;
  // True if a value of its dtype can have a gradient: integers cannot.
  { autograd.differentiable(value) } -> std::same_as<bool>;
  // A value without bytes and without a graph, on the device of `value`. It may become a node's
  // input and output like any other.
  { autograd.phony(value) } -> std::same_as<typename A::Value>;
  // Makes `outputs`, which have no graph, the outputs of a node with these inputs, that runs on the
  // current stream and saves nothing. Its backward takes the outputs' gradients and returns the
  // inputs'; an absent one is none. Without grad mode, or where no input requires grad, there is no
  // node.
  { autograd.node(values, outputs, backward) } -> std::same_as<std::vector<typename A::Value>>;
};

}  // namespace ferry
