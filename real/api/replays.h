// The replayer of the process, and what it is told of each op: for ferry::replay, and for the spans
// of a plan.
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

// LibTorch's tensors for replays. What it keeps is always another tensor on the same bytes: an op's
// output has no graph when the op ends, and gets one then.
struct ReplayTensors : TorchCompute {
  static Tensor detach(const Tensor& tensor) { return TorchTensors::detach(tensor); }
  // (A number that was made a tensor takes part in type promotion in its own way.)
  static bool plain(const Tensor& tensor) {
    return TorchTensors::plain(tensor) && !tensor.unsafeGetTensorImpl()->is_wrapped_number();
  }
};
static_assert(ReplayDevice<ReplayTensors>);

using Replays = Replayer<ReplayTensors, TorchAutograd>;

// Never destroyed: graphs in statics outlive it otherwise.
Replays& replays();

// Runs ops and sees them as spans are told of them. Thread-safe: ops of a backward in a span may
// run on several threads.
class SeenOps {
 public:
  using Seen = SeenCall<ReplayTensors>;

  // Runs an op that traits_of says is seen. `again`: whether it may run again.
  Seen run(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack,
           bool again, c10::function_ref<void()> run);
  // Tells the span, which may run ops of its own.
  static void tell(Replays::Span& span, Seen seen);

 private:
  std::shared_ptr<const Ambient> autocast();

  std::mutex mutex_;
  AutocastNow autocast_;
};

}  // namespace ferry::real
