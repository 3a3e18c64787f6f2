// An autograd that does what a test says: tasks and nodes are brackets around lambdas.
//
//   script.backward([&] { script.node([&] { ... saved->unpack() ... }); });
//
// A node's callbacks run where its lambda returned; a task's run whether it returned or threw. A
// script is one thread's; tasks of several scripts have different ids.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "shared/seam/autograd.h"

namespace ferry::test {

template <class T>
class ScriptedAutograd;

template <class T>
class Scripted {
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
  friend class ScriptedAutograd<T>;
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

  static inline std::atomic<std::int64_t> task_ids_{0};
  std::vector<Task> tasks_;
  std::uint64_t node_ids_ = 0;
  HookStack<T> hooks_;
};

template <class T>
class ScriptedAutograd {
 public:
  using Tensor = T;
  explicit ScriptedAutograd(Scripted<T>& script) : script_(&script) {}

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
    HooksScope(ScriptedAutograd autograd, HookStack<Tensor> hooks)
        : ReplacedHooks<Tensor>(autograd.script_->hooks_, std::move(hooks)) {}
  };

 private:
  Scripted<T>* script_;
};

}  // namespace ferry::test
