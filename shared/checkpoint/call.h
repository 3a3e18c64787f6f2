// One call of a checkpointed function, with everything that its recompute needs: the function; its
// inputs, which are saved under the hooks around the call; the stream; the ambient state and random
// generators; the skip tensors that it popped; and the contexts of the user. A frame owns it and
// decides when it recomputes (frame.h). Nothing of it changes after forward has begun, so there is
// no lock.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "shared/checkpoint/state.h"
#include "shared/seam/autograd.h"
#include "shared/seam/checkpoint_context.h"
#include "shared/seam/checkpoint_options.h"
#include "shared/seam/device.h"
#include "shared/seam/hooks.h"
#include "shared/seam/invariant.h"
#include "shared/skip/tracker.h"

namespace ferry {

template <ComputeDevice D, RecomputingAutograd A>
class CheckpointCall {
 public:
  using Tensor = typename D::Tensor;
  using Stream = typename D::Stream;
  using Value = typename A::Value;
  using State = CheckpointState<D, A>;
  // Runs the function on these inputs and drops its outputs.
  using Function = std::function<void(std::vector<Value>)>;

  // The constructor saves the inputs under the hooks that are installed, so construct the call
  // before you push the hooks of the checkpoint.
  CheckpointCall(std::shared_ptr<State> state, const std::vector<Value>& inputs, Function function,
                 CoreCheckpointOptions options, CheckpointContexts contexts,
                 std::shared_ptr<const SegmentPlan> plan)
      : state_(std::move(state)),
        function_(std::move(function)),
        options_(std::move(options)),
        contexts_(std::move(contexts)),
        plan_(std::move(plan)),
        around_(without_context(state_->autograd.hooks())),
        recomputing_(checkpoint_context(state_->autograd.hooks()).recomputing),
        stream_(state_->device.current_stream()),
        ambient_(state_->autograd.ambient(
            inputs, options_.preserve_rng_state && state_->rules.replays_random())),
        life_(*state_),
        numbered_(checkpoint_context(state_->autograd.hooks()).run) {
    std::optional<NoHooksGuard<A>> unseen;
    if (!state_->rules.saves_inputs_outside()) unseen.emplace(state_->autograd);
    for (const Value& input : inputs) inputs_.push_back(state_->autograd.save(input));
  }
  CheckpointCall(const CheckpointCall&) = delete;
  CheckpointCall& operator=(const CheckpointCall&) = delete;
  ~CheckpointCall() = default;

  const CoreCheckpointOptions& options() const { return options_; }
  const SegmentPlan* plan() const { return plan_.get(); }  // null if no plan is in force
  const HookStack<Tensor>& around() const { return around_; }
  bool recomputing() const { return recomputing_; }  // true if a recompute made this call
  const Stream& stream() const { return stream_; }

  // Returns the context for forward, given the caller's context `now`. Call it once.
  std::shared_ptr<const CheckpointContext> begin(CheckpointContext now) {
    invariant(!skips_again_, "a checkpointed call begins once");
    SkipRegion region = skip_region_here(state_->autograd);
    skips_again_ = std::move(region.again);
    return inside(std::move(now), std::move(region.first), /*again=*/false);
  }
  // Call it once, after forward succeeded.
  void complete() const { state_->autograd.check(ambient_); }

  // Writes a recompute to the decision log.
  void log_recompute() const { numbered_.recomputes(); }

  // Recomputes: `run` gets a function without arguments that calls the user's function on the
  // current stream, under these hooks, with everything else as in forward. In debug mode `log`
  // receives the ops that it runs.
  template <class Run>
  void again(std::shared_ptr<Hooks<Tensor>> hooks, std::optional<typename A::OpLog>& log, Run run) {
    invariant(skips_again_ != nullptr, "a checkpointed call runs again after it began");
    A& autograd = state_->autograd;
    std::vector<Value> inputs;
    for (typename A::SavedValue& input : inputs_) inputs.push_back(input.unpack());
    const HooksGuard<A> guard(autograd, std::move(hooks),
                              inside_again(checkpoint_context(autograd.hooks())));
    const typename A::GradModeScope grad(
        autograd, state_->rules.recomputes_with_grad() || autograd.grad_mode());
    std::optional<typename A::AmbientScope> ambient;
    if (state_->rules.replays_ambient()) ambient.emplace(autograd, ambient_);
    CheckpointScope scope;
    if (contexts_.recompute) scope = contexts_.recompute();
    if (options_.debug) log.emplace(autograd);
    run([&] { function_(std::move(inputs)); });
  }

 private:
  // Removes the context: a call that held its group would keep alive what the group recomputed.
  static HookStack<Tensor> without_context(HookStack<Tensor> stack) {
    stack.checkpoint = nullptr;
    return stack;
  }

  std::shared_ptr<const CheckpointContext> inside(CheckpointContext now,
                                                  std::shared_ptr<SkipScope> skips,
                                                  bool again) const {
    now.recomputing |= again;
    now.checkpointing = !again;
    now.plan = plan_ ? std::make_shared<PlannedSegments>(plan_) : nullptr;
    now.skips = std::move(skips);
    return std::make_shared<const CheckpointContext>(std::move(now));
  }
  std::shared_ptr<const CheckpointContext> inside_again(CheckpointContext now) const {
    return inside(std::move(now), skips_again_(), /*again=*/true);
  }

  const std::shared_ptr<State> state_;
  const Function function_;
  const CoreCheckpointOptions options_;
  const CheckpointContexts contexts_;
  const std::shared_ptr<const SegmentPlan> plan_;
  const HookStack<Tensor> around_;
  const bool recomputing_;
  const Stream stream_;
  const typename A::Ambient ambient_;
  const typename State::Life life_;
  const NumberedSegment numbered_;
  std::function<std::shared_ptr<SkipScope>()> skips_again_;  // has the popped values
  std::vector<typename A::SavedValue> inputs_;
};

}  // namespace ferry
