// The replayer of this process, and the report of each op to its spans. ferry::replay and the spans
// of plans use it.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/util/FunctionRef.h>

#include <memory>
#include <mutex>

#include "real/api/replayed_op.h"
#include "real/autograd/torch_autograd.h"
#include "real/tensors/torch_compute.h"
#include "shared/replay/replayer.h"

namespace ferry::real {

// LibTorch's tensors for replays. It always keeps a new tensor object on the same bytes, because an
// output gets its graph only after the op has ended.
struct ReplayTensors : TorchCompute {
  static Tensor detach(const Tensor& tensor) { return TorchTensors::detach(tensor); }
  // A number that was wrapped in a tensor has other rules of type promotion, so it is not plain.
  static bool plain(const Tensor& tensor) {
    return TorchTensors::plain(tensor) && !tensor.unsafeGetTensorImpl()->is_wrapped_number();
  }
};
static_assert(ReplayDevice<ReplayTensors>);

using Replays = Replayer<ReplayTensors, TorchAutograd>;

// Never destroyed, because graphs in static variables may outlive it.
Replays& replays();

// Runs ops and makes the reports about them. Thread-safe: ops of a backward inside a span may run
// on several threads.
class SeenOps {
 public:
  using Seen = SeenCall<ReplayTensors>;

  // Runs an op for which traits_of says is_seen. `again` says whether a replay may run it.
  Seen run(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack,
           bool again, c10::function_ref<void()> run);
  // Reports the op to the span, which may run ops of its own.
  static void tell(Replays::Span& span, Seen seen);

 private:
  std::shared_ptr<const Ambient> autocast();

  std::mutex mutex_;
  AutocastNow autocast_;
};

}  // namespace ferry::real
