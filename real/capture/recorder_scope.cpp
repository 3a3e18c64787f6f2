#include "real/capture/recorder_scope.h"

#include <ATen/ATen.h>

#include <atomic>
#include <exception>
#include <utility>

#include "ferry/capture.h"
#include "real/tensors/torch_error.h"
#include "shared/seam/checkpoint_context.h"

namespace ferry::real::capture {
namespace {

std::atomic<Recorder*>& active_recorder() {
  static std::atomic<Recorder*> active = nullptr;
  return active;
}

std::shared_ptr<Recorder> activate(std::shared_ptr<Recorder> recorder) {
  Recorder* none = nullptr;
  if (!active_recorder().compare_exchange_strong(none, recorder.get())) {
    throw torch_error(CaptureError("another capture is under way in this process"));
  }
  return recorder;
}

}  // namespace

// LibTorch swallows exceptions of these callbacks, so they are stored for later.
struct Recorder::Observer {
  template <class Call>
  static void guarded(Call call) {
    Recorder* const recorder = Scope::active();
    if (!recorder) return;
    try {
      call(*recorder);
    } catch (const std::exception& error) {
      const std::lock_guard lock(recorder->mutex_);
      recorder->fail_later(error.what());
    }
  }

  static void op_ends(const at::RecordFunction& op, at::ObserverContext*) {
    guarded([&](Recorder& recorder) { recorder.results(op.outputs()); });
  }

  static std::unique_ptr<at::ObserverContext> node_begins(const at::RecordFunction&) {
    guarded([&](Recorder& recorder) { recorder.running(torch::autograd::get_current_node()); });
    return nullptr;
  }

  static std::unique_ptr<at::ObserverContext> nothing(const at::RecordFunction&) { return nullptr; }

  // Returns a context in which checkpoints do not recompute.
  static std::shared_ptr<const CheckpointContext> context() {
    auto context = std::make_shared<CheckpointContext>(checkpoint_context(TorchAutograd().hooks()));
    context->plan = std::make_shared<PlannedSegments>(
        std::make_shared<const SegmentPlan>(SegmentPlan::closed()));
    return context;
  }

  static void observe() { observe_below_autograd(&Recorder::run_op); }
};

Recorder::Scope::Scope(std::shared_ptr<Recorder> recorder)
    : recorder_((Observer::observe(), activate(std::move(recorder)))),
      key_(kRecordKey),
      hooks_(TorchAutograd(), std::make_shared<Pair>(recorder_), Observer::context()),
      segments_([recorder = recorder_](const auto& arguments, bool reentrant) {
        return recorder->segment(arguments, reentrant);
      }) {
  results_ =
      at::addThreadLocalCallback(at::RecordFunctionCallback(&Observer::nothing, &Observer::op_ends)
                                     .needsOutputs(true)
                                     .scopes({at::RecordScope::FUNCTION}));
  nodes_ = at::addThreadLocalCallback(at::RecordFunctionCallback(&Observer::node_begins)
                                          .scopes({at::RecordScope::BACKWARD_FUNCTION}));
}

Recorder::Scope::~Scope() {
  at::removeCallback(nodes_);
  at::removeCallback(results_);
  active_recorder() = nullptr;
}

Recorder* Recorder::Scope::active() { return active_recorder(); }

c10::Storage copied(const at::Tensor& tensor) {
  const c10::impl::ExcludeDispatchKeyGuard unseen(kRecordKey);
  const at::RecordFunctionGuard quiet(/*is_enabled=*/false);
  const at::NoGradGuard no_grad;
  const auto bytes = static_cast<std::int64_t>(tensor.storage().nbytes());
  const at::Tensor flat = at::empty({0}, tensor.options().dtype(at::kByte).requires_grad(false));
  return at::Tensor(flat.set_(tensor.storage(), 0, {bytes}, {1})).clone().storage();
}

}  // namespace ferry::real::capture
