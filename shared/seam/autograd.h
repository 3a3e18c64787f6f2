// The seam, second half: the concepts of autograd that the core is written against.
//
// A graph task is one call of backward. Its id is an integer that is never reused; an address could
// be. Tasks nest, and the tasks of one thread do not have to form a stack. A handle on autograd can
// be copied freely.
//
// Offloading needs Autograd. Recomputing needs RecomputingAutograd, which is larger, and pipelines
// need PipelineAutograd, which is larger still.
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
// The gradient that a backward function receives for an output that got no gradient.
enum class AbsentGradient : std::uint8_t { kZeros, kNone };

template <class A>
concept Autograd = requires(A autograd, std::function<void()> callback,
                            HookStack<typename A::Tensor> hooks) {
  requires std::copyable<A>;

  // Returns the graph task that the calling thread works for; kNone outside a backward.
  { autograd.graph_task() } -> std::same_as<GraphTaskId>;
  // Returns the node that the calling thread runs in that task. Ids are not reused within the task.
  { autograd.node() } -> std::same_as<NodeId>;

  // Runs the callback once, after the current node has run and dropped its unpacked tensors. It
  // does not run if the node threw. If the callback throws, the backward fails.
  { autograd.after_node(callback) } -> std::same_as<void>;
  // Runs the callback once, when the current graph task ends, *whether it succeeds or fails*.
  // (LibTorch's own final callbacks do not run after a failure.) It must not throw.
  { autograd.after_task(callback) } -> std::same_as<void>;

  // Returns the hook stack in the slot that the engine copies to its threads with the graph task.
  { autograd.hooks() } -> std::same_as<HookStack<typename A::Tensor>>;
  // While a scope lives, the slot of its thread holds these hooks; afterwards the previous ones.
  requires std::constructible_from<typename A::HooksScope, A, HookStack<typename A::Tensor>>;
};

// Scopes are neither copied nor moved. They end on the thread that made them, in reverse order.
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
  // A value that is saved as a node saves its inputs. If hooks are installed, the innermost pair
  // packs it. Otherwise it is kept with its version, and unpacking checks the version. The unpacked
  // value has its place in the graph again.
  requires std::movable<typename A::SavedValue>;
  { autograd.save(value) } -> std::same_as<typename A::SavedValue>;
  { saved.unpack() } -> std::same_as<typename A::Value>;

  // The calling thread's id; not reused while a graph task that the thread works for is running.
  { autograd.thread() } -> std::same_as<ThreadId>;

  { autograd.grad_mode() } -> std::same_as<bool>;
  requires std::constructible_from<typename A::GradModeScope, A, bool>;

  // The state outside their inputs that ops depend on, such as autocast. With `true` it includes
  // the random generators of the host and of the devices that hold `values`.
  { autograd.ambient(values, yes) } -> std::same_as<typename A::Ambient>;
  // Call it after forward. It throws if the state turned out to be impossible to capture.
  { autograd.check(ambient) } -> std::same_as<void>;
  // While a scope lives, ops see that state. Afterwards the state, with the generators, is as
  // before.
  requires std::constructible_from<typename A::AmbientScope, A, typename A::Ambient>;

  // While it lives, records the ops that the calling thread runs.
  requires std::constructible_from<typename A::OpLog, A>;
  { ops.names() } -> std::same_as<std::vector<std::string>>;

  // Only the reentrant variant of checkpoint needs the calls below.

  { autograd.requires_grad(value) } -> std::same_as<bool>;
  // Returns a leaf with the same tensor; it requires grad if `value` does.
  { autograd.detach(value) } -> std::same_as<typename A::Value>;
  // Runs a graph task, inside the current one or alone, from these roots with their gradients. It
  // accumulates in leaves. An absent gradient means 1, which needs a scalar root.
  { autograd.backward(values, values) } -> std::same_as<void>;
  // Returns the gradient that was accumulated in a leaf, or none.
  { autograd.gradient(value) } -> std::same_as<typename A::Value>;
  // True if every task around the current node accumulates in leaves (no `.grad()`, no inputs).
  { autograd.checkpoint_valid() } -> std::same_as<bool>;
  // Makes `outputs`, which have no graph, the outputs of a node with these inputs. The node saves
  // the inputs. Its backward function takes the saved inputs and the gradients of the outputs, and
  // returns the gradients of the inputs; AbsentGradient says what stands for a missing gradient. If
  // grad mode is off, or no input requires grad, no node is made.
  {
    autograd.function(values, outputs, backward, AbsentGradient::kZeros)
    } -> std::same_as<std::vector<typename A::Value>>;
};

// Pipelines also need nodes of their own, and values without bytes that carry an order.
template <class A>
concept PipelineAutograd = RecomputingAutograd<A> &&
    requires(A autograd, const typename A::Value value, const typename A::Tensor tensor,
             std::span<const typename A::Value> values, std::vector<typename A::Value> outputs,
             std::function<std::vector<typename A::Value>(std::vector<typename A::Value>)> backward,
             bool yes) {
  // These return true if the value has a tensor; the tensor without its graph; and a leaf with a
  // tensor.
  { autograd.exists(value) } -> std::same_as<bool>;
  { autograd.tensor(value) } -> std::same_as<typename A::Tensor>;
  { autograd.leaf(tensor, yes) } -> std::same_as<typename A::Value>;
  // True if a value of this dtype can have a gradient. Integers cannot.
  { autograd.differentiable(value) } -> std::same_as<bool>;
  // Returns a value without bytes and without a graph, on the device of `value`. It can be an input
  // and an output of nodes like any other value.
  { autograd.phony(value) } -> std::same_as<typename A::Value>;
  // Makes `outputs`, which have no graph, the outputs of a node with these inputs. The node runs on
  // the current stream and saves nothing. Its backward function takes the gradients of the outputs
  // and returns those of the inputs; a missing one is an empty value. If grad mode is off, or no
  // input requires grad, no node is made.
  { autograd.node(values, outputs, backward) } -> std::same_as<std::vector<typename A::Value>>;
};

}  // namespace ferry
