#include "real/autograd/torch_autograd.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "real/autograd/engine.h"
#include "real/autograd/graph_task.h"
#include "real/autograd/hooks_slot.h"
#include "real/autograd/node_pointer.h"
#include "real/autograd/outputs.h"

namespace ferry::real {
namespace {

namespace autograd = torch::autograd;

// The node that a thread met last.
struct Met {
  GraphTaskId task = GraphTaskId::kNone;
  RememberedNode node;
  NodeId id = NodeId::kNone;
  bool is(GraphTaskId other_task, const NodePointer& other) const {
    return task == other_task && node.is(other);
  }
};

NodeId next_node_id() {
  static std::atomic<std::uint64_t> next{1};
  return NodeId{next.fetch_add(1, std::memory_order_relaxed)};
}

// The callbacks of one node, by task, because a retained node may be in several tasks. If a node
// throws, its callbacks are dropped at the end of the task.
class Waiting {
 public:
  // Returns true for the first callback of the task.
  bool add(GraphTaskId task, std::function<void()> callback) {
    const std::lock_guard lock(mutex_);
    const bool first = std::none_of(waiting_.begin(), waiting_.end(),
                                    [&](const auto& other) { return other.first == task; });
    waiting_.emplace_back(task, std::move(callback));
    return first;
  }

  std::vector<std::function<void()>> take(GraphTaskId task) {
    const std::lock_guard lock(mutex_);
    std::vector<std::function<void()>> callbacks;
    std::erase_if(waiting_, [&](auto& waiting) {
      if (waiting.first != task) return false;
      callbacks.push_back(std::move(waiting.second));
      return true;
    });
    return callbacks;
  }

 private:
  std::mutex mutex_;
  std::vector<std::pair<GraphTaskId, std::function<void()>>> waiting_;
};

class AfterNode final : public autograd::FunctionPostHook {
 public:
  void add(GraphTask& task, std::function<void()> callback) {
    if (!waiting_->add(task.id(), std::move(callback))) return;
    task.after([weak = std::weak_ptr(waiting_), id = task.id()] {
      if (const auto waiting = weak.lock()) waiting->take(id);
    });
  }

  autograd::variable_list operator()(const autograd::variable_list& gradients,
                                     const autograd::variable_list&) override {
    for (const auto& callback : waiting_->take(TorchAutograd().graph_task())) callback();
    return gradients;
  }

  void compiled_args(torch::dynamo::autograd::CompiledNodeArgs&) const override {
    refuse_compiled("ferry: offloading with ReloadPool::kCopyStream");
  }

 private:
  std::shared_ptr<Waiting> waiting_ = std::make_shared<Waiting>();
};

AfterNode& after_node_of(autograd::Node& node) {
  for (const auto& hook : node.post_hooks()) {
    if (auto* const ours = dynamic_cast<AfterNode*>(hook.get())) return *ours;
  }
  auto hook = std::make_unique<AfterNode>();
  AfterNode& added = *hook;
  node.add_post_hook(std::move(hook));
  return added;
}

}  // namespace

GraphTaskId TorchAutograd::graph_task() const {
  const GraphTask* const task = GraphTask::current();
  return task ? task->id() : GraphTaskId::kNone;
}

NodeId TorchAutograd::node() const {
  const auto node = autograd::get_current_node();
  const GraphTaskId task = graph_task();
  if (!node || task == GraphTaskId::kNone) return NodeId::kNone;
  thread_local Met met;
  if (!met.is(task, node)) met = {task, RememberedNode(node), next_node_id()};
  return met.id;
}

void TorchAutograd::after_node(std::function<void()> callback) const {
  const auto node = autograd::get_current_node();
  GraphTask* const task = GraphTask::current();
  TORCH_CHECK(node && task, "after_node outside a node of a graph task");
  after_node_of(*node).add(*task, std::move(callback));
}

void TorchAutograd::after_task(std::function<void()> callback) const {
  GraphTask* const task = GraphTask::current();
  TORCH_CHECK(task, "after_task outside a graph task");
  task->after(std::move(callback));
}

HookStack<at::Tensor> TorchAutograd::hooks() const {
  HookStack<at::Tensor> stack;
  const std::size_t others = other_hooks_depth();
  if (const auto* const ours = innermost_of_ours(others)) {
    stack = *ours;
  } else if (others > 0) {
    const HooksSlot* const around = HooksSlot::current();
    stack = with_other_hooks(around ? around->stack : HookStack<at::Tensor>{});
  }
  put_exec_group(stack);
  return stack;
}

}  // namespace ferry::real
