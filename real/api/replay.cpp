#include "ferry/replay.h"

#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "real/api/known_op.h"
#include "real/api/replayed_op.h"
#include "real/autograd/below_autograd.h"
#include "real/autograd/thread_end.h"
#include "real/autograd/torch_autograd.h"
#include "real/tensors/torch_compute.h"
#include "shared/replay/replayer.h"

namespace ferry {
namespace real {
namespace {

using c10::DispatchKeySet;
using c10::OperatorHandle;
using torch::jit::Stack;

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
Replays& replays() {
  static auto* const replays = new Replays(ReplayTensors(), TorchAutograd());
  return *replays;
}

// While it lives, this thread's ops are not seen: those that record.
class Aside {
 public:
  Aside() : key_(kBelowAutograd) {}

 private:
  const c10::impl::ExcludeDispatchKeyGuard key_;
  const c10::AutoGradMode no_grad_{false};
};

// Tells the span of each op.
class Recording final : public OpScope {
 public:
  using Seen = SeenCall<ReplayTensors>;

  Recording(std::shared_ptr<Replays::Span> span, std::set<std::string> keep)
      : span_(std::move(span)), keep_(std::move(keep)) {}

  void run(const OperatorHandle& op, DispatchKeySet keys, Stack* stack) override {
    const OpTraits& traits = traits_of(op);
    if (!traits.is_seen) return run_outside(op, keys, stack);
    Seen seen;
    const bool grad_mode = c10::GradMode::is_enabled();
    {
      const Aside aside;
      for (OpTensor& each : tensors_of(op, *stack)) {
        const bool passes = ReplayTensors::plain(each.tensor);
        seen.arguments.push_back({std::move(each.tensor), each.written, passes});
      }
      if (traits.can_run_again && !keeps(op)) {
        auto call = std::make_shared<const ReplayedOp>(op, keys, *stack, autocast(), grad_mode);
        seen.run = [call = std::move(call)](const std::vector<at::Tensor>& tensors) {
          return call->run(tensors);
        };
      }
    }
    seen.makes_blank = traits.makes_blank;
    seen.overwrites = traits.overwrites;
    run_outside(op, keys, stack);
    seen.outputs = results_of(op, *stack);
    const Aside aside;
    span_->ran(std::move(seen));
  }

 private:
  bool keeps(const OperatorHandle& op) const {
    return !keep_.empty() && keep_.contains(c10::toString(op.operator_name()));
  }
  // Ops of a backward in the span may run on several threads.
  std::shared_ptr<const Ambient> autocast() {
    const std::lock_guard lock(mutex_);
    return autocast_.get();
  }

  const std::shared_ptr<Replays::Span> span_;
  const std::set<std::string> keep_;
  std::mutex mutex_;
  AutocastNow autocast_;
};

}  // namespace
}  // namespace real

namespace replay_impl {

struct Span::State {
  explicit State(std::set<std::string> keep)
      : span(real::replays().begin()), hooks(std::in_place, real::TorchAutograd(), span->hooks()) {
    real::install_below_autograd();
    ops = real::OpScope::enter(std::make_shared<real::Recording>(span, std::move(keep)));
  }

  std::shared_ptr<real::Replays::Span> span;
  std::optional<HooksGuard<real::TorchAutograd>> hooks;
  CheckpointScope ops;
};

Span::Span(const ReplayOptions& options) {
  std::set<std::string> keep;
  for (const std::string& op : options.keep()) keep.insert(real::known_op(op));
  if (c10::GradMode::is_enabled()) state_ = std::make_unique<State>(std::move(keep));
}
Span::~Span() { real::leave_at_thread_end(state_); }

void Span::end() {
  if (!state_) return;
  state_->ops.reset();
  state_->hooks.reset();
  state_->span->end();
}

}  // namespace replay_impl

ReplayStatistics replay_statistics() { return real::replays().statistics(); }

}  // namespace ferry
