// Runs functions as checkpoints: what they save for backward is recomputed there. It behaves like
// torch.utils.checkpoint with use_reentrant=False.
//
//   Checkpointer<SimDevice, SimAutograd> checkpointer(device, autograd);
//   checkpointer.run(inputs, options,
//                    [&](std::vector<Value> inputs) { outputs = function(std::move(inputs)); });
//
// These are the rules of nesting (NOTE [ Nestable Checkpoint ] in PyTorch):
//
//  1. Only the innermost checkpoint sees a saved tensor.
//  2. The inputs of an inner checkpoint are saved by the outer one. So unpacking a tensor
//     recomputes each checkpoint around it once.
//  3. A recompute starts as if no checkpoint were active. Checkpoints inside it work as usual.
//  4. A recomputed tensor belongs to one backward, and is freed when it is unpacked.
//  5. A recompute stops as soon as all tensors that are known to be needed exist.
//  6. A checkpointed function may run a backward.
//
// Hooks around a checkpoint, such as an offloader's, see its inputs, and those saved tensors that
// CoreCheckpointOptions::choices (or a plan) gives to them. Hooks that the function itself pushes
// see what is saved under them.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "shared/checkpoint/frame.h"
#include "shared/checkpoint/reentrant.h"
#include "shared/checkpoint/state.h"
#include "shared/seam/checkpoint_context.h"
#include "shared/seam/checkpoint_options.h"
#include "shared/seam/error.h"

namespace ferry {

// The handle for users. Copies share one state.
template <ComputeDevice D, RecomputingAutograd A>
requires std::same_as<typename D::Tensor, typename A::Tensor>
class Checkpointer {
 public:
  using Value = typename A::Value;
  // Runs the user's function. It is called once, before `run` returns, with the inputs that `run`
  // got, and once for every recompute.
  using Function = std::function<void(std::vector<Value>)>;

  explicit Checkpointer(D device, A autograd, Rules rules = {})
      : state_(std::make_shared<State>(std::move(device), std::move(autograd), rules)) {}

  // Recomputes call `function`. Forward calls `forward`, which may do more, such as keep the
  // outputs.
  void run(std::vector<Value> inputs, CoreCheckpointOptions options, Function function,
           Function forward) {
    A& autograd = state_->autograd;
    const auto [around, plan] = here();
    if (!autograd.grad_mode() || (plan && !plan->checkpoint)) {
      return run_plain(plan, around, [&] { forward(std::move(inputs)); });
    }
    options.early_stop = around.early_stop.value_or(options.early_stop);
    options.debug = around.debug.value_or(options.debug);
    if (plan) options.choices = plan->choices;
    if (options.debug && options.context_fn) {
      throw make_error<typename A::Tensor>(
          ValueError("debug=True is incompatible with non-default context_fn"));
    }
    CheckpointContexts contexts;
    if (options.context_fn) contexts = options.context_fn();
    const bool debug = options.debug;
    const auto frame = std::make_shared<Frame>(state_, inputs, std::move(function),
                                               std::move(options), contexts, plan);
    std::optional<typename A::OpLog> ops;
    {
      const HooksGuard<A> hooks(autograd, frame->forward_hooks(), frame->begin(around));
      CheckpointScope scope;
      if (contexts.forward) scope = contexts.forward();
      if (debug) ops.emplace(autograd);
      forward(std::move(inputs));
    }
    frame->complete(ops ? ops->names() : std::vector<std::string>{});
  }

  // The reentrant variant (use_reentrant=True). Forward makes no graph inside the function.
  // Backward recomputes the whole function, then runs a nested graph task over the result. It
  // supports only backwards that accumulate in leaves. Of the options it uses only
  // preserve_rng_state, and of a plan only `checkpoint`.
  std::vector<Value> run_reentrant(const std::vector<Value>& inputs,
                                   const CoreCheckpointOptions& options,
                                   std::function<std::vector<Value>(std::vector<Value>)> function) {
    const auto [around, plan] = here();
    if (plan && !plan->checkpoint) {
      return run_plain(plan, around, [&] { return function(inputs); });
    }
    const auto region =
        std::make_shared<ReentrantRegion<D, A>>(state_, inputs, options, std::move(function), plan);
    return state_->autograd.function(
        inputs, region->forward(inputs),
        [region](std::vector<Value> saved, std::vector<Value> gradients) {
          return region->backward(std::move(saved), std::move(gradients));
        },
        AbsentGradient::kZeros);
  }

  CheckpointStatistics statistics() const { return state_->statistics(); }
  // True if no graph refers to any segment.
  bool empty() const { return state_->statistics().alive == 0; }

 private:
  using State = CheckpointState<D, A>;
  using Frame = CheckpointFrame<D, A>;

  // The context of a call. If grad mode is on, it has taken the next segment of the plan.
  struct Here {
    CheckpointContext around;
    std::shared_ptr<const SegmentPlan> plan;
  };
  Here here() const {
    Here here{checkpoint_context(state_->autograd.hooks()), nullptr};
    if (here.around.plan && state_->autograd.grad_mode()) here.plan = here.around.plan->next();
    return here;
  }

  // Runs a segment without a checkpoint. Calls inside it still follow the plan.
  template <class Call>
  auto run_plain(const std::shared_ptr<const SegmentPlan>& plan, CheckpointContext context,
                 Call call) {
    if (!plan) return call();
    context.plan = std::make_shared<PlannedSegments>(plan);
    const CheckpointContextGuard<A> guard(state_->autograd, std::move(context));
    return call();
  }

  std::shared_ptr<State> state_;
};

}  // namespace ferry
