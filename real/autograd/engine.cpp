#include "real/autograd/engine.h"

#include <torch/csrc/autograd/engine.h>

#include <memory>
#include <utility>

#include "real/autograd/graph_task.h"
#include "real/autograd/saved_by_pair.h"
#include "real/autograd/slots.h"
#include "real/autograd/torch_autograd.h"

namespace ferry::real {
namespace {

namespace autograd = torch::autograd;

class FerryEngine final : public autograd::Engine {
 public:
  autograd::variable_list execute(const autograd::edge_list& roots,
                                  const autograd::variable_list& inputs, bool keep_graph,
                                  bool create_graph, bool accumulate_grad,
                                  const autograd::edge_list& outputs) override {
    const bool outermost = c10::ThreadLocalDebugInfo::get(kGraphTaskSlot) == nullptr;
    const auto task = std::make_shared<GraphTask>();
    const GraphTask::Scope scope(task);
    struct End {
      GraphTask& task;
      ~End() { task.end(); }
    } end{*task};
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

}  // namespace ferry::real
