// Runs backward over a graph, as PyTorch's engine does. The core's Autograd (autograd.h) is a
// handle on it.
//
// One call of run() is one graph task. It counts dependencies from the roots. Of the ready nodes,
// the one with the highest sequence number runs first. Each thread numbers the nodes that it makes,
// so this is the node made last only if one thread made them all. Nodes of different threads are
// ordered only by edges. (If numbers are equal, LibTorch leaves the order open; here the node made
// last runs first.) A node runs on the stream of its forward. A gradient that crosses streams is
// ordered by an event and recorded as in use. Gradients that meet are added, in place if nobody
// else can see them. At the end, the caller's stream waits for the streams of the accumulators and
// of the requested gradients. Nodes may call run() again: tasks nest.
//
// After a failure, nothing more of the task runs except its after_task callbacks. Not modelled:
// engine threads (except the choice of which goes on), hooks on tensors, anomaly mode. Source:
// torch/csrc/autograd/engine.cpp, input_buffer.cpp, functions/accumulate_grad.h.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "shared/seam/autograd.h"
#include "sim/gpu/machine.h"
#include "sim/program/graph.h"

namespace ferry::sim {

// Runs the nodes' bodies for the engine.
class NodeRunner {
 public:
  virtual ~NodeRunner() = default;
  // Returns the gradients of the node's inputs, one for each edge. May run a nested task.
  virtual std::vector<Value> run_node(const std::shared_ptr<Node>& node,
                                      std::vector<Value> gradients, bool grad_mode) = 0;
  virtual Value& gradient_of(Slot global) = 0;
  // The gradient of the global has been accumulated, as for register_post_accumulate_grad_hook.
  virtual void accumulated(Slot global) = 0;
  // Makes a node on the current stream.
  virtual std::shared_ptr<Node> new_node(std::string_view name) = 0;
  // The time to read and write so many bytes.
  virtual KernelTime memory_time(std::int64_t bytes) = 0;
};

// Observes when a graph task begins, when it ends (before its callbacks), and when its callbacks
// have run; also when one of its nodes begins, and when the node has run (before its callbacks).
// Leaves do not count as nodes, and a node that throws has not run.
class TaskWatch {
 public:
  virtual ~TaskWatch() = default;
  virtual void task_began() = 0;
  virtual void task_ends() noexcept {}
  virtual void task_ended() noexcept = 0;
  virtual void node_begins() {}
  virtual void node_ran() {}
};

class GraphEngine {
 public:
  GraphEngine(Machine& machine, NodeRunner& runner) : machine_(machine), runner_(runner) {}
  GraphEngine(const GraphEngine&) = delete;
  GraphEngine& operator=(const GraphEngine&) = delete;

  struct Root {
    Edge edge;
    Tensor gradient;
  };
  // With `wanted`, returns the gradients that reach those edges, in order, and changes no global.
  std::vector<Value> run(std::span<const Root> roots, bool retain_graph, bool create_graph,
                         std::span<const Edge> wanted = {});

  // SimAutograd, the handle, uses these.
  GraphTaskId graph_task() const { return tasks_.empty() ? GraphTaskId::kNone : tasks_.back()->id; }
  std::size_t depth() const { return tasks_.size(); }  // number of running tasks
  NodeId node() const { return tasks_.empty() ? NodeId::kNone : tasks_.back()->node; }
  void after_node(std::function<void()> callback) {
    tasks_.back()->after_node.push_back(std::move(callback));
  }
  // The gradients that the node produced, valid in after_node callbacks.
  std::span<const Value> node_results() const {
    return tasks_.empty() ? std::span<const Value>() : tasks_.back()->results;
  }
  void after_task(std::function<void()> callback) {
    tasks_.back()->after_task.push_back(std::move(callback));
  }
  // True if every running task accumulates in leaves.
  bool all_accumulate() const {
    return std::all_of(tasks_.begin(), tasks_.end(),
                       [](const Task* task) { return task->wanted.empty(); });
  }
  void watch_tasks(std::vector<TaskWatch*> watches) { task_watches_ = std::move(watches); }
  HookStack<Tensor> hooks;

 private:
  class TaskScope;
  // The gradients that have reached one node so far.
  struct Inputs {
    std::shared_ptr<Node> node;
    std::vector<Value> gradients;
  };
  // A node of the task that has not run yet.
  struct Pending {
    std::uint64_t id = 0;  // of the node
    int dependencies = 0;  // gradients that are still to come
    bool needed = false;   // the node leads to a wanted edge
    bool ready = false;
    Inputs inputs;
    void drop() {  // the gradients die first
      inputs.gradients.clear();
      inputs.node.reset();
    }
  };
  // Ordered by sequence number, then by id. The highest runs first.
  struct Ready {
    std::uint64_t sequence = 0;
    std::uint64_t id = 0;
    std::size_t at = 0;  // index of the task's nodes
    bool operator<(const Ready& other) const {
      return sequence != other.sequence ? sequence < other.sequence : id < other.id;
    }
  };
  struct Task {
    GraphTaskId id = GraphTaskId::kNone;
    NodeId node = NodeId::kNone;
    bool retain_graph = false;
    bool create_graph = false;
    std::vector<Pending> nodes;  // by id
    std::vector<Ready> ready;    // in order
    std::size_t place_of(const Node& of) const {
      const auto place =
          std::lower_bound(nodes.begin(), nodes.end(), of.id,
                           [](const Pending& each, std::uint64_t ids) { return each.id < ids; });
      return static_cast<std::size_t>(place - nodes.begin());
    }
    // Drops what will not run any more, the latest nodes first: those that still wait, then the
    // ready ones.
    void drop_all() {
      for (auto each = nodes.rbegin(); each != nodes.rend(); ++each) {
        if (!each->ready) each->drop();
      }
      for (auto each = ready.rbegin(); each != ready.rend(); ++each) nodes[each->at].drop();
      ready.clear();
    }
    std::span<const Edge> wanted;
    std::vector<Value> found;
    std::vector<StreamId> leaf_streams;  // at the end, the caller's stream waits for them
    void sync_from(StreamId stream) {
      if (std::find(leaf_streams.begin(), leaf_streams.end(), stream) == leaf_streams.end()) {
        leaf_streams.push_back(stream);
      }
    }
    std::span<const Value> results;  // valid while after_node runs
    std::vector<std::function<void()>> after_node;
    std::vector<std::function<void()>> after_task;
  };

  void count(Task& task, std::span<const Root> roots);
  static void find_needed(Task& task, std::span<Node* const> nodes);
  void flow(Task& task, const Edge& edge, Value gradient, StreamId from);
  void join(Value& into, Value gradient, const Node& node, bool grad_mode);
  std::size_t choose(const Task& task);  // returns an index of task.ready
  void run_ready(Task& task);
  void run_next(Task& task);
  void accumulate(Task& task, const Node& leaf, Value gradient);
  void cross(const Tensor& tensor, StreamId from, StreamId to);
  Value add(const Value& a, const Value& b, StreamId stream, bool grad_mode);

  Machine& machine_;
  NodeRunner& runner_;
  std::vector<Task*> tasks_;
  std::vector<TaskWatch*> task_watches_;  // not owned
  std::int64_t task_ids_ = 0;
  std::uint64_t node_runs_ = 0;
  std::uint64_t counts_ = 0;
};

}  // namespace ferry::sim
