// One micro-batch at one stage of a GPipe pipeline (pipeline.h), whose backward is autograd's. The
// stage runs plainly, or as a checkpoint in two halves (early_checkpoint.h). Pipelines that run
// backward themselves have cut_stage.h instead.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "shared/checkpoint/state.h"
#include "shared/pipeline/early_checkpoint.h"
#include "shared/pipeline/pipeline_rules.h"
#include "shared/pipeline/stage.h"
#include "shared/skip/stage_skips.h"

namespace ferry {

template <PipelineDevice D, PipelineAutograd A>
class StageRun {
 public:
  using Values = std::vector<typename A::Value>;

  StageRun(std::shared_ptr<CheckpointState<D, A>> state, const PipelineStage<A>& stage,
           typename StageSkips<D, A>::Of skips, Place<D> place)
      : state_(std::move(state)),
        function_(stage.function),
        skips_(std::move(skips)),
        place_(std::move(place)) {}

  // Call it in the worker of the device.
  void forward(const CallersState<A>& callers, Values& values) {
    const typename D::StreamScope on(place_.device, place_.compute);
    const typename CallersState<A>::Scope scope(callers);
    values = run(function_, skips_, std::move(values), /*again=*/false);
  }

  // Runs the stage as a checkpoint, in the worker of the device. `finish` adds the second half.
  void forward_checkpointed(const CallersState<A>& callers, Values& values,
                            const CoreCheckpointOptions& options) {
    const typename D::StreamScope on(place_.device, place_.compute);
    const typename CallersState<A>::Scope scope(callers);
    inputs_ = std::move(values);
    skips_.popped = std::make_shared<PoppedTensors<D>>();
    checkpoint_ = std::make_shared<EarlyCheckpoint<D, A>>(
        state_, inputs_, options,
        [first = skips_, function = function_, count = inputs_.size(),
         again = false](Values inputs) mutable {
          if (!std::exchange(again, true)) {
            // Skip tensors that it popped so far become further inputs.
            const auto skips = std::exchange(first.popped, nullptr);
            return run(function, with(first, skips), std::move(inputs), /*again=*/false);
          }
          const auto popped = popped_of(first, inputs, count);
          inputs.resize(count);
          return run(function, with(first, popped), std::move(inputs), /*again=*/true);
        });
    values = checkpoint_->checkpoint(inputs_, [this] { return kept(); });
  }
  // Call it on the thread that began the step.
  void finish(Values& values) {
    if (!checkpoint_ || !PipelineRules(state_->rules).recomputes_early()) return;
    const typename D::StreamScope on(place_.device, place_.compute);
    checkpoint_->recompute(inputs_, values);
  }

 private:
  using Skips = typename StageSkips<D, A>::Of;

  static Skips with(Skips skips, std::shared_ptr<PoppedTensors<D>> popped) {
    skips.popped = std::move(popped);
    return skips;
  }
  // Returns the skip tensors that the stage popped, in the order of routes. popped_of() is the
  // reverse.
  Values kept() {
    Values values;
    for (const std::size_t route : skips_.layout->into(skips_.stage)) {
      const auto found = skips_.popped->find(route);
      const bool some = found != skips_.popped->end() && found->second;
      values.push_back(some ? skips_.autograd.leaf(*found->second, false) : typename A::Value());
    }
    return values;
  }
  static std::shared_ptr<PoppedTensors<D>> popped_of(const Skips& skips, const Values& inputs,
                                                     std::size_t first) {
    auto popped = std::make_shared<PoppedTensors<D>>();
    std::size_t at = first;
    for (const std::size_t route : skips.layout->into(skips.stage)) {
      const auto& value = inputs[at++];
      std::optional<typename D::Tensor> tensor;
      if (skips.autograd.exists(value)) tensor = skips.autograd.tensor(value);
      popped->emplace(route, std::move(tensor));
    }
    return popped;
  }
  static Values run(const typename PipelineStage<A>::Function& function, const Skips& skips,
                    Values values, bool again) {
    const auto tracker = std::make_shared<StageSkips<D, A>>(skips, again);
    const SkipTrackerGuard<A> guard(skips.autograd, tracker);
    tracker->open(values);
    values = function(std::move(values));
    tracker->close(values);
    return values;
  }

  const std::shared_ptr<CheckpointState<D, A>> state_;
  const typename PipelineStage<A>::Function function_;
  typename StageSkips<D, A>::Of skips_;
  const Place<D> place_;
  Values inputs_;
  std::shared_ptr<EarlyCheckpoint<D, A>> checkpoint_;
};

}  // namespace ferry
