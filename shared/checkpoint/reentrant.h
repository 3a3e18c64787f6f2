// A region of the reentrant variant of checkpoint. Forward makes no graph. Backward recomputes the
// whole region with a graph and runs a nested graph task through it.
//
// It does not save its inputs: the node that calls backward() does (checkpointer.h). A checkpoint
// in two halves calls recompute() and gradients() alone (shared/pipeline/early_checkpoint.h). It
// supports only backwards that accumulate in leaves; any other is an error. So is a recompute with
// another number of outputs, and, in backward(), one in which no output requires grad.
//
// Source: torch/utils/checkpoint.py, CheckpointFunction.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "shared/checkpoint/errors.h"
#include "shared/checkpoint/state.h"
#include "shared/seam/autograd.h"
#include "shared/seam/checkpoint_context.h"
#include "shared/seam/checkpoint_options.h"
#include "shared/seam/device.h"
#include "shared/seam/error.h"
#include "shared/seam/invariant.h"
#include "shared/skip/tracker.h"

namespace ferry {

template <ComputeDevice D, RecomputingAutograd A>
class ReentrantRegion {
 public:
  using Value = typename A::Value;
  using Function = std::function<std::vector<Value>(std::vector<Value>)>;
  using State = CheckpointState<D, A>;

  ReentrantRegion(std::shared_ptr<State> state, const std::vector<Value>& inputs,
                  const CoreCheckpointOptions& options, Function function,
                  std::shared_ptr<const SegmentPlan> plan)
      : state_(std::move(state)),
        function_(std::move(function)),
        plan_(std::move(plan)),
        ambient_(state_->autograd.ambient(
            inputs, options.preserve_rng_state && state_->rules.replays_random())),
        life_(*state_),
        numbered_(checkpoint_context(state_->autograd.hooks()).run) {}

  // Runs forward. Call it once.
  std::vector<Value> forward(const std::vector<Value>& inputs) {
    invariant(!skips_again_, "a reentrant region runs forward once");
    SkipRegion skips = skip_region_here(state_->autograd);
    skips_again_ = std::move(skips.again);
    const CheckpointContextGuard<A> guard(state_->autograd, inside(false, std::move(skips.first)));
    const typename A::GradModeScope no_grad(state_->autograd, false);
    std::vector<Value> outputs = function_(inputs);
    state_->autograd.check(ambient_);
    return outputs;
  }

  std::vector<Value> backward(std::vector<Value> inputs, std::vector<Value> gradients) {
    Recomputed recomputed = recompute(std::move(inputs));
    const bool necessary = std::ranges::any_of(recomputed.outputs, [&](const Value& output) {
      return state_->autograd.requires_grad(output);
    });
    std::vector<Value> result = this->gradients(std::move(recomputed), std::move(gradients));
    if (!necessary) {
      throw make_error<typename A::Tensor>(Error(checkpoint_text::kNothingRequiresGrad));
    }
    return result;
  }

  // The two halves of backward. `recompute` calls the function again and makes a graph; `gradients`
  // runs a graph task over it, unless no output requires grad.
  struct Recomputed {
    std::vector<Value> inputs;
    std::vector<Value> outputs;
  };
  Recomputed recompute(std::vector<Value> inputs) {
    A& autograd = state_->autograd;
    if (state_->rules.refuses_reentrant() && !autograd.checkpoint_valid()) {
      throw make_error<typename A::Tensor>(Error(checkpoint_text::kReentrantInvalid));
    }
    state_->count(&CheckpointStatistics::recomputes);
    numbered_.recomputes();
    if (state_->rules.detaches_reentrant()) {
      for (Value& input : inputs) input = autograd.detach(input);
    }
    std::vector<Value> outputs = again(inputs);
    return {std::move(inputs), std::move(outputs)};
  }
  std::vector<Value> gradients(Recomputed recomputed, std::vector<Value> gradients) {
    A& autograd = state_->autograd;
    const std::vector<Value>& outputs = recomputed.outputs;
    if (outputs.size() != gradients.size()) {
      throw make_error<typename A::Tensor>(
          CheckpointError(checkpoint_text::outputs(gradients.size(), outputs.size())));
    }
    std::vector<Value> roots;
    std::vector<Value> from;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (!autograd.requires_grad(outputs[i])) continue;
      roots.push_back(outputs[i]);
      from.push_back(std::move(gradients[i]));
    }
    if (!roots.empty()) autograd.backward(roots, from);
    std::vector<Value> result;
    for (const Value& input : recomputed.inputs) result.push_back(autograd.gradient(input));
    return result;
  }

 private:
  std::vector<Value> again(const std::vector<Value>& inputs) {
    invariant(skips_again_ != nullptr, "a reentrant region runs again after its forward");
    A& autograd = state_->autograd;
    const CheckpointContextGuard<A> guard(autograd, inside(true, skips_again_()));
    const typename A::AmbientScope ambient(autograd, ambient_);
    const typename A::GradModeScope grad(autograd, true);
    return function_(inputs);
  }

  CheckpointContext inside(bool recomputing, std::shared_ptr<SkipScope> skips) const {
    CheckpointContext context = checkpoint_context(state_->autograd.hooks());
    context.checkpointing = !recomputing;
    context.recomputing |= recomputing;
    context.plan = plan_ ? std::make_shared<PlannedSegments>(plan_) : nullptr;
    context.skips = std::move(skips);
    return context;
  }

  const std::shared_ptr<State> state_;
  const Function function_;
  const std::shared_ptr<const SegmentPlan> plan_;  // null if no plan is in force
  const typename A::Ambient ambient_;
  const typename State::Life life_;
  const NumberedSegment numbered_;
  std::function<std::shared_ptr<SkipScope>()> skips_again_;  // has the popped values
};

}  // namespace ferry
