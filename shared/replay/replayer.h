// Makes spans: backward makes their saved tensors again by replaying their operator calls (span.h).
//
//   Replayer<SimDevice, SimAutograd> replayer(device, autograd);
//   const auto span = replayer.begin();
//   {
//     HooksGuard<SimAutograd> hooks(autograd, span->hooks());
//     ... ops run, and each is reported by span->ran(…)
//   }
//   span->end();
//
// Unlike a checkpoint, a span needs no function: it is any range of operator calls, and it replays
// the calls that ran. The hooks of a span are innermost while it lives. They keep what its calls
// made, and give other saved tensors, and the arguments that its replays need, to the hooks around.
// So spans, checkpoints and offloading nest in any order.
#pragma once

#include <concepts>
#include <memory>
#include <utility>

#include "shared/replay/replay_state.h"
#include "shared/replay/span.h"
#include "shared/seam/hooks.h"

namespace ferry {

// The handle for a world. Copies share one state.
template <ReplayDevice D, RecomputingAutograd A>
requires std::same_as<typename D::Tensor, typename A::Tensor>
class Replayer {
 public:
  using Span = ReplaySpan<D, A>;

  explicit Replayer(D device, A autograd, Rules rules = {})
      : state_(std::make_shared<State>(std::move(device), std::move(autograd), rules)) {}

  // Begins a span on the calling thread and its current stream. The hooks around it are those in
  // force, or `around`.
  std::shared_ptr<Span> begin() { return begin(state_->autograd.hooks()); }
  std::shared_ptr<Span> begin(HookStack<typename D::Tensor> around) {
    return std::make_shared<Span>(state_, std::move(around));
  }

  ReplayStatistics statistics() const { return state_->statistics(); }
  // True if no graph refers to any span.
  bool empty() const { return state_->statistics().alive == 0; }

 private:
  using State = ReplayState<D, A>;
  std::shared_ptr<State> state_;
};

}  // namespace ferry
