// The replayer: makes spans, whose saved tensors are made again in backward by running their
// operator calls again (span.h).
//
//   Replayer<SimDevice, SimAutograd> replayer(device, autograd);
//   const auto span = replayer.begin();
//   {
//     HooksGuard<SimAutograd> hooks(autograd, span->hooks());
//     ... ops run, and each is told to span->ran(…)
//   }
//   span->end();
//
// Beside checkpoints. A checkpoint runs a function again, and so needs one: a span is any range of
// operator calls, and what it replays is what ran. A span's hooks are innermost within it: what its
// calls made is its own, and what they did not make goes to the hooks around, as do the arguments
// that its replays need. So spans, checkpoints and offloading nest in any order.
#pragma once

#include <concepts>
#include <memory>
#include <utility>

#include "shared/replay/replay_state.h"
#include "shared/replay/span.h"
#include "shared/seam/hooks.h"

namespace ferry {

// The handle that a world holds. Copies share one state.
template <ReplayDevice D, RecomputingAutograd A>
requires std::same_as<typename D::Tensor, typename A::Tensor>
class Replayer {
 public:
  using Span = ReplaySpan<D, A>;

  explicit Replayer(D device, A autograd, Rules rules = {})
      : state_(std::make_shared<State>(std::move(device), std::move(autograd), rules)) {}

  // A span that begins here and now, on this thread and stream: under the hooks in force, or under
  // others.
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
