// An autograd that does what a test says, over LibTorch's tensors: tasks and nodes are brackets
// around lambdas.
//
//   script.backward([&] { script.node([&] { ... saved->unpack() ... }); });
//
// A node's callbacks run where its lambda returned; a task's whether it returned or threw.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "shared/autograd.h"

namespace ferry::real {

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
  HookStack<at::Tensor> hooks_;
};

class ScriptAutograd {
 public:
  using Tensor = at::Tensor;
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

}  // namespace ferry::real
