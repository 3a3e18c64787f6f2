#include "real/api/replays.h"

#include <c10/core/GradMode.h>

#include <utility>
#include <vector>

#include "real/autograd/below_autograd.h"

namespace ferry::real {

Replays& replays() {
  static auto* const replays = new Replays(ReplayTensors(), TorchAutograd());
  return *replays;
}

SeenOps::Seen SeenOps::run(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                           torch::jit::Stack* stack, bool again, c10::function_ref<void()> run) {
  const OpTraits& traits = traits_of(op);
  Seen seen;
  const bool grad_mode = c10::GradMode::is_enabled();
  {
    const Aside aside;
    for (OpTensor& each : tensors_of(op, *stack)) {
      const bool passes = ReplayTensors::plain(each.tensor);
      seen.arguments.push_back({std::move(each.tensor), each.written, passes});
    }
    if (again && can_run_again(op, *stack)) {
      auto call = std::make_shared<const ReplayedOp>(op, keys, *stack, autocast(), grad_mode);
      seen.run = [call = std::move(call)](const std::vector<at::Tensor>& tensors) {
        return call->run(tensors);
      };
    }
  }
  seen.makes_blank = traits.makes_blank;
  seen.overwrites = traits.overwrites;
  run();
  seen.outputs = results_of(op, *stack);
  return seen;
}

void SeenOps::tell(Replays::Span& span, Seen seen) {
  const Aside aside;
  span.ran(std::move(seen));
}

std::shared_ptr<const Ambient> SeenOps::autocast() {
  const std::lock_guard lock(mutex_);
  return autocast_.get();
}

}  // namespace ferry::real
