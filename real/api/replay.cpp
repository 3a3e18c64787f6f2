#include "ferry/replay.h"

#include <c10/core/GradMode.h>

#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "real/api/known_op.h"
#include "real/api/replays.h"
#include "real/autograd/below_autograd.h"
#include "real/autograd/thread_end.h"

namespace ferry {
namespace real {
namespace {

using c10::DispatchKeySet;
using c10::OperatorHandle;
using torch::jit::Stack;

// Reports each op to the span.
class Recording final : public OpScope {
 public:
  Recording(std::shared_ptr<Replays::Span> span, std::set<std::string> keep)
      : span_(std::move(span)), keep_(std::move(keep)) {}

  void run(const OperatorHandle& op, DispatchKeySet keys, Stack* stack) override {
    const auto run = [&] { run_outside(op, keys, stack); };
    if (!traits_of(op).is_seen) return run();
    SeenOps::tell(*span_, ops_.run(op, keys, stack, !keeps(op), run));
  }

 private:
  bool keeps(const OperatorHandle& op) const {
    return !keep_.empty() && keep_.contains(c10::toString(op.operator_name()));
  }

  const std::shared_ptr<Replays::Span> span_;
  const std::set<std::string> keep_;
  SeenOps ops_;
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
