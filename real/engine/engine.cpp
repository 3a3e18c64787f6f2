// The autograd engine of a C++ program: LibTorch's own engine, with default saved-tensor hooks and
// an end for every graph task.
//
// The base engine has no hooks; this one uses the stack of hooks_slot.h. It wraps execute, so the
// end of a task is known whether the task succeeds or fails.
//
// It is installed when the library is loaded, before any backward can run, because LibTorch starts
// threads only for the engine that runs first. It is never destroyed, because graphs in static
// variables may outlive it.

#include "real/autograd/engine.h"

#include <torch/csrc/autograd/engine.h>

#include <memory>
#include <utility>

#include "real/autograd/graph_task.h"
#include "real/autograd/hooks_slot.h"
#include "real/autograd/slots.h"

namespace ferry::real {
namespace {

namespace autograd = torch::autograd;

// The slot in which the engine's threads find their task.
struct TaskSlot final : c10::DebugInfoBase {
  GraphTask task;
};

class FerryEngine final : public autograd::Engine {
 public:
  autograd::variable_list execute(const autograd::edge_list& roots,
                                  const autograd::variable_list& inputs, bool keep_graph,
                                  bool create_graph, bool accumulate_grad,
                                  const autograd::edge_list& outputs) override {
    const bool outermost = c10::ThreadLocalDebugInfo::get(kGraphTaskSlot) == nullptr;
    const auto slot = std::make_shared<TaskSlot>();
    const c10::DebugInfoGuard scope(kGraphTaskSlot, slot);
    struct End {
      GraphTask& task;
      ~End() { task.end(); }
    } end{slot->task};
    try {
      return Engine::execute(roots, inputs, keep_graph, create_graph, accumulate_grad, outputs);
    } catch (...) {
      // Ready nodes that did not run stay in the thread's queue until its next backward, with their
      // graph and saved tensors. Inside another task the queue belongs to that task.
      if (outermost) init_local_ready_queue(std::make_shared<autograd::ReadyQueue>());
      throw;
    }
  }

  std::unique_ptr<autograd::SavedVariableHooks> get_default_saved_variable_hooks() override {
    auto pair = innermost_pair();
    return pair ? std::make_unique<SavedByPair>(std::move(pair)) : nullptr;
  }
};

autograd::Engine& engine() {
  static auto* const engine = new FerryEngine;
  return *engine;
}

}  // namespace

void install_engine() {
  static const bool installed = (autograd::set_default_engine_stub(&engine), true);
  static_cast<void>(installed);
}

namespace {
[[maybe_unused]] const bool at_load = (install_engine(), true);
}  // namespace

GraphTask* GraphTask::current() {
  auto* const slot = static_cast<TaskSlot*>(c10::ThreadLocalDebugInfo::get(kGraphTaskSlot));
  return slot && !slot->task.ended() ? &slot->task : nullptr;
}

std::size_t other_hooks_depth() { return 0; }

HookStack<at::Tensor> with_other_hooks(HookStack<at::Tensor> around) { return around; }

void put_exec_group(HookStack<at::Tensor>&) {}

}  // namespace ferry::real
