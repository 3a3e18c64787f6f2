// Autograd by hand, for tests that pack and unpack themselves.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "formats/layout.h"
#include "shared/autograd.h"
#include "sim/device.h"

namespace ferry::test {

struct Script {
  GraphTaskId task = GraphTaskId::kNone;
  NodeId node = NodeId::kNone;
  std::vector<std::function<void()>> after_node;
  std::vector<std::function<void()>> after_task;
  HookStack<sim::Tensor> hooks;

  void end_node() {
    for (const auto& callback : std::exchange(after_node, {})) callback();
    node = NodeId::kNone;
  }
  void end_task() {
    node = NodeId::kNone;
    for (const auto& callback : std::exchange(after_task, {})) callback();
    task = GraphTaskId::kNone;
  }
};

class ScriptAutograd {
 public:
  using Tensor = sim::Tensor;
  explicit ScriptAutograd(std::shared_ptr<Script> script) : script_(std::move(script)) {}
  GraphTaskId graph_task() const { return script_->task; }
  NodeId node() const { return script_->node; }
  void after_node(std::function<void()> callback) {
    script_->after_node.push_back(std::move(callback));
  }
  void after_task(std::function<void()> callback) {
    script_->after_task.push_back(std::move(callback));
  }
  HookStack<Tensor> hooks() const { return script_->hooks; }
  void set_hooks(HookStack<Tensor> hooks) { script_->hooks = std::move(hooks); }

 private:
  std::shared_ptr<Script> script_;
};

static_assert(Autograd<ScriptAutograd>);

inline sim::Tensor make_bytes(sim::Machine& machine, std::int64_t bytes) {
  const auto window = std::make_shared<const sim::Window>(
      sim::Window{contiguous_layout(DType::kU8, {bytes}), {0, bytes}});
  return sim::make_tensor(machine.allocate(bytes, machine.current_stream()), {window, 0},
                          machine.new_version());
}

}  // namespace ferry::test
