// An autograd that its caller controls: graph tasks and nodes are brackets around calls. With it,
// try_saves.h and try_exempt.h use an offloader by hand, without a program.
//
// The callbacks of a node run when its call has returned and everything unpacked in it is dropped;
// those of a task run when the task ends. The watch is notified of both, as by the simulated
// engine.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "shared/seam/autograd.h"
#include "sim/gpu/tensor.h"
#include "sim/program/graph_engine.h"

namespace ferry::verify {

class Script {
 public:
  // The watch must outlive it.
  explicit Script(sim::TaskWatch& watch) : watch_(watch) {}

  // Bodies of tasks and nodes must not throw.
  template <class Body>
  void task(Body body) {
    open_.push_back({GraphTaskId{tasks_++}});
    watch_.task_began();
    body();
    watch_.task_ends();
    for (const auto& callback : std::exchange(open_.back().after_task, {})) callback();
    watch_.task_ended();
    open_.pop_back();
  }
  template <class Body>
  void node(Body body) {
    open_.back().node = NodeId{++nodes_};
    watch_.node_begins();
    body();
    watch_.node_ran();
    for (const auto& callback : std::exchange(open_.back().after_node, {})) callback();
    open_.back().node = NodeId::kNone;
  }

  // How often a callback for the end of a task was requested.
  std::int64_t asked() const { return asked_; }

 private:
  friend class ScriptAutograd;
  using Callbacks = std::vector<std::function<void()>>;
  struct ScriptTask {
    GraphTaskId id = GraphTaskId::kNone;
    NodeId node = NodeId::kNone;
    Callbacks after_node = {};
    Callbacks after_task = {};
  };

  sim::TaskWatch& watch_;
  std::int64_t tasks_ = 0;
  std::int64_t asked_ = 0;
  std::uint64_t nodes_ = 0;
  std::vector<ScriptTask> open_;  // a task may run in a node of another task
  HookStack<sim::Tensor> hooks_;
};

class ScriptAutograd {
 public:
  using Tensor = sim::Tensor;
  explicit ScriptAutograd(Script& script) : script_(&script) {}

  GraphTaskId graph_task() const {
    return script_->open_.empty() ? GraphTaskId::kNone : script_->open_.back().id;
  }
  NodeId node() const {
    return script_->open_.empty() ? NodeId::kNone : script_->open_.back().node;
  }
  void after_node(std::function<void()> callback) {
    script_->open_.back().after_node.push_back(std::move(callback));
  }
  void after_task(std::function<void()> callback) {
    ++script_->asked_;
    script_->open_.back().after_task.push_back(std::move(callback));
  }
  HookStack<Tensor> hooks() const { return script_->hooks_; }
  struct HooksScope : ReplacedHooks<Tensor> {
    HooksScope(ScriptAutograd autograd, HookStack<Tensor> hooks)
        : ReplacedHooks<Tensor>(autograd.script_->hooks_, std::move(hooks)) {}
  };

 private:
  Script* script_;
};

static_assert(Autograd<ScriptAutograd>);

}  // namespace ferry::verify
