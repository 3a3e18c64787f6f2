// The autograd engine of a Python process: Ferry's engine in front of Python's.
//
// Python's backward calls PythonEngine directly, whatever engine is installed, and this engine
// forwards all other calls to it. It handles only one question itself: for every tensor that a node
// saves, LibTorch asks the engine which hooks see it.

#include <ATen/SavedTensorHooks.h>
#include <torch/csrc/autograd/engine.h>

#include <memory>
#include <utility>
#include <vector>

#include "real/autograd/engine.h"
#include "real/autograd/hooks_slot.h"
#include "real/autograd/node_pointer.h"
#include "real/python/graph_tasks.h"
#include "real/python/pair.h"
#include "real/python/saved.h"
#include "real/python/weights.h"

namespace ferry::real {
namespace {

namespace autograd = torch::autograd;

class EngineBeforePython final : public autograd::Engine {
 public:
  explicit EngineBeforePython(autograd::Engine& python) : python_(python) {}

  autograd::variable_list execute(const autograd::edge_list& roots,
                                  const autograd::variable_list& inputs, bool keep_graph,
                                  bool create_graph, bool accumulate_grad,
                                  const autograd::edge_list& outputs) override {
    return python_.execute(roots, inputs, keep_graph, create_graph, accumulate_grad, outputs);
  }
  c10::intrusive_ptr<at::ivalue::Future> execute_with_graph_task(
      const std::shared_ptr<autograd::GraphTask>& task, NodePointer root,
      autograd::InputBuffer&& inputs) override {
    return python_.execute_with_graph_task(task, std::move(root), std::move(inputs));
  }
  std::unique_ptr<autograd::AnomalyMetadata> make_anomaly_metadata() override {
    return python_.make_anomaly_metadata();
  }
  void thread_on_exception(const std::shared_ptr<autograd::GraphTask>& task,
                           const NodePointer& node, std::exception& error) override {
    python_.thread_on_exception(task, node, error);
  }
#if TORCH_VERSION_MINOR >= 14
  std::vector<std::unique_ptr<autograd::NodeCreationHook>> get_node_creation_hooks() override {
    return python_.get_node_creation_hooks();
  }
#endif
  void thread_init(int device, const std::shared_ptr<autograd::ReadyQueue>& queue,
                   bool should_increment) override {
    python_.thread_init(device, queue, should_increment);
  }

  std::unique_ptr<autograd::SavedVariableHooks> get_default_saved_variable_hooks() override {
    auto hooks = hooks_in_force();
    if (!python::holds_weights()) return hooks;
    if (at::SavedTensorDefaultHooks::get_tls_state().is_tracing) return hooks;
    return std::make_unique<python::SavedBesideWeights>(std::move(hooks));
  }

  // Drops the ready nodes that a failed task left on the calling thread, which runs no task.
  void drop_what_is_ready() { init_local_ready_queue(std::make_shared<autograd::ReadyQueue>()); }

 private:
  std::unique_ptr<autograd::SavedVariableHooks> hooks_in_force() {
    const auto& state = at::SavedTensorDefaultHooks::get_tls_state();
    if (state.is_tracing) return python_.get_default_saved_variable_hooks();
    const HookStack<at::Tensor>* hooks = innermost_of_ours(state.stack.size());
    if (!hooks && !state.stack.empty()) {
      hooks = python::top_pair();
      if (!hooks) return python_.get_default_saved_variable_hooks();
    }
    if (!hooks || hooks->disabled || !hooks->top || !hooks->top->pair) return nullptr;
    return std::make_unique<python::SavedInPython>(hooks->top->pair);
  }

  autograd::Engine& python_;
};

// Never destroyed, because graphs outlive the interpreter.
EngineBeforePython& the_engine() {
  static auto* const engine = new EngineBeforePython(autograd::Engine::get_default_engine());
  return *engine;
}

autograd::Engine& engine() { return the_engine(); }

}  // namespace

// Called when the module is imported. `import torch` has run before, so Python's engine is there.
void install_engine() {
  static const bool installed =
      (static_cast<void>(the_engine()), autograd::set_default_engine_stub(&engine), true);
  static_cast<void>(installed);
}

void python::drop_what_is_ready() { the_engine().drop_what_is_ready(); }

}  // namespace ferry::real
