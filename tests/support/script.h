// An autograd that does what a test says: tasks and nodes are brackets around lambdas.
//
//   script.backward([&] { script.node([&] { ... saved->unpack() ... }); });
//
// make_bytes makes it something to save. A node's callbacks run where its lambda returned; a task's
// run whether it returned or threw.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "formats/layout.h"
#include "shared/autograd.h"
#include "sim/machine.h"
#include "sim/tensor.h"

namespace ferry {

class Script {
 public:
  template <class Body>
  void backward(Body body) {
    tasks_.push_back(Task{GraphTaskId{task_ids_++}});
    try {
      body();
    } catch (...) {
      end_task();
      throw;
    }
    end_task();
  }

  template <class Body>
  void node(Body body) {
    tasks_.back().node = NodeId{++node_ids_};
    body();
    const auto callbacks = std::exchange(tasks_.back().after_node, {});
    for (const auto& callback : callbacks) callback();
    tasks_.back().node = NodeId::kNone;
  }

  std::int64_t tasks_open() const { return static_cast<std::int64_t>(tasks_.size()); }

 private:
  friend class ScriptAutograd;
  using Callbacks = std::vector<std::function<void()>>;
  struct Task {
    GraphTaskId id = GraphTaskId::kNone;
    NodeId node = NodeId::kNone;
    Callbacks after_node = {};
    Callbacks after_task = {};
  };

  void end_task() {
    const auto callbacks = std::exchange(tasks_.back().after_task, {});
    for (const auto& callback : callbacks) callback();
    tasks_.pop_back();
  }

  std::vector<Task> tasks_;
  std::int64_t task_ids_ = 0;
  std::uint64_t node_ids_ = 0;
  HookStack<sim::Tensor> hooks_;
};

class ScriptAutograd {
 public:
  using Tensor = sim::Tensor;
  explicit ScriptAutograd(Script& script) : script_(&script) {}

  GraphTaskId graph_task() const {
    return script_->tasks_.empty() ? GraphTaskId::kNone : script_->tasks_.back().id;
  }
  NodeId node() const {
    return script_->tasks_.empty() ? NodeId::kNone : script_->tasks_.back().node;
  }
  void after_node(std::function<void()> callback) {
    script_->tasks_.back().after_node.push_back(std::move(callback));
  }
  void after_task(std::function<void()> callback) {
    script_->tasks_.back().after_task.push_back(std::move(callback));
  }
  HookStack<Tensor> hooks() const { return script_->hooks_; }

  struct HooksScope : ReplacedHooks<Tensor> {
    HooksScope(ScriptAutograd autograd, HookStack<Tensor> hooks)
        : ReplacedHooks(autograd.script_->hooks_, std::move(hooks)) {}
  };

 private:
  Script* script_;
};

static_assert(Autograd<ScriptAutograd>);

inline sim::Tensor make_bytes(sim::Machine& machine, std::int64_t bytes) {
  const auto window = std::make_shared<const sim::Window>(
      sim::Window{contiguous_layout(DType::kU8, {bytes}), {0, bytes}});
  return sim::make_tensor(machine.allocate(bytes, machine.current_stream()), {window, 0},
                          machine.new_version());
}

}  // namespace ferry
