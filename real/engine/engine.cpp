// The engine of a C++ program: LibTorch's own, with default saved-tensor hooks and an end for every
// graph task.
//
// The base engine has no hooks; this one looks at our stack (hooks_slot.h). And it brackets
// execute, so that a task's end is known whether it succeeds or fails.
//
// Installed when the library is loaded, before any backward can run: LibTorch starts its threads
// for the engine that runs first, and no other. Never destroyed: graphs in statics outlive it
// otherwise.

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

// The task that the engine's threads are told of.
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
      // What was ready and did not run stays in the thread's queue until its next backward, with
      // the graph and all that it saved. Within another task the queue is that one's.
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
