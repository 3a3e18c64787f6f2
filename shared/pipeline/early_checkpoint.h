// A checkpoint in two halves, so that its recompute does not wait for the gradient.
//
//     forward:   checkpoint (no graph inside) ─▶ wait for the next stage ─▶ recompute (a phony)
//     backward:  recompute: runs the function ─▶ wait for the gradient ─▶ checkpoint: a graph task
//                of its own over the results
//
// Backward runs the halves in reverse order, so the function is recomputed while the gradient is
// still on its way from the next device. An edge makes this order: the first half returns a phony
// beside its outputs, and the second half takes it. Without the edge, autograd would order by the
// numbers of the nodes. These mean nothing here: a worker makes the first node, and the thread that
// began the step makes the second. As with the reentrant variant, only backwards that accumulate in
// leaves work.
//
// Source: torchgpipe/checkpoint.py.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "shared/checkpoint/reentrant.h"
#include "shared/seam/autograd.h"
#include "shared/transfer/dependency.h"

namespace ferry {

template <ComputeDevice D, PipelineAutograd A>
class EarlyCheckpoint : public std::enable_shared_from_this<EarlyCheckpoint<D, A>> {
 public:
  using Value = typename A::Value;
  using Values = std::vector<Value>;
  using Region = ReentrantRegion<D, A>;

  EarlyCheckpoint(std::shared_ptr<CheckpointState<D, A>> state, const Values& inputs,
                  const CoreCheckpointOptions& options, typename Region::Function function)
      : state_(state), region_(state, inputs, options, std::move(function), nullptr) {}

  // The first half: runs the function. Its outputs have a graph even if no input has one, because
  // gradients of parameters flow through it. After the function, `keep` is called. It returns
  // further values that the recompute needs. They are appended to the inputs and saved with them,
  // and so is the phony for the second half.
  Values checkpoint(Values& inputs, const std::function<Values()>& keep) {
    A& autograd = state_->autograd;
    Values outputs = region_.forward(inputs);
    for (Value& kept : keep()) inputs.push_back(std::move(kept));
    const Value phony = autograd.phony(inputs.empty() ? Value() : inputs.front());
    outputs.push_back(phony);
    Values from = inputs;
    from.push_back(autograd.leaf(autograd.tensor(phony), true));
    outputs = autograd.function(
        from, std::move(outputs),
        [self = this->shared_from_this()](Values saved, Values gradients) {
          return self->backward(std::move(saved), std::move(gradients));
        },
        AbsentGradient::kNone);
    inputs.push_back(std::move(outputs.back()));
    outputs.pop_back();
    return outputs;
  }

  // The second half. It takes the inputs, as the first half extended them, and its outputs.
  void recompute(const Values& inputs, Values& outputs) {
    A& autograd = state_->autograd;
    Value& value = lane(autograd, outputs);
    const Values phony = autograd.function(
        inputs, {autograd.phony(value)},
        [self = this->shared_from_this()](Values saved, const Values&) {
          const std::size_t count = saved.size();
          self->recompute_early(std::move(saved));
          return Values(count);
        },
        AbsentGradient::kNone);
    join(autograd, value, phony.front());
  }

 private:
  using Recomputed = typename Region::Recomputed;

  void recompute_early(Values saved) {
    saved.pop_back();
    Recomputed recomputed = region_.recompute(std::move(saved));
    const GraphTaskId task = state_->autograd.graph_task();
    {
      const std::lock_guard lock(mutex_);
      recomputed_.emplace_back(task, std::move(recomputed));
    }
    // If the backward fails before it reaches the first half, the result is dropped here.
    state_->autograd.after_task([weak = this->weak_from_this(), task] {
      if (const auto self = weak.lock()) self->take(task);
    });
  }
  // Returns none if the backward began after the second half.
  std::optional<Recomputed> take(GraphTaskId task) {
    const std::lock_guard lock(mutex_);
    for (auto entry = recomputed_.begin(); entry != recomputed_.end(); ++entry) {
      if (entry->first != task) continue;
      std::optional<Recomputed> taken = std::move(entry->second);
      recomputed_.erase(entry);
      return taken;
    }
    return std::nullopt;
  }

  Values backward(Values saved, Values gradients) {
    saved.pop_back();
    gradients.pop_back();
    std::optional<Recomputed> recomputed = take(state_->autograd.graph_task());
    if (!recomputed) recomputed = region_.recompute(std::move(saved));
    go_without(recomputed->outputs, gradients);
    Values result = region_.gradients(std::move(*recomputed), std::move(gradients));
    result.emplace_back();
    return result;
  }

  // An output may have got no gradient. Backward then continues from it by an edge without a
  // gradient, because stashed tensors of the stage need their turn. So a tensor that has no
  // gradient without a checkpoint gets none here.
  void go_without(Values& outputs, Values& gradients) {
    A& autograd = state_->autograd;
    const typename A::GradModeScope grad(autograd, true);
    for (std::size_t i = 0; i < outputs.size() && i < gradients.size(); ++i) {
      if (autograd.exists(gradients[i]) || !autograd.requires_grad(outputs[i])) continue;
      outputs[i] = fork(autograd, outputs[i]);
      gradients[i] = autograd.phony(outputs[i]);
    }
  }

  const std::shared_ptr<CheckpointState<D, A>> state_;
  Region region_;
  typename D::Mutex mutex_;
  std::vector<std::pair<GraphTaskId, Recomputed>> recomputed_;  // between the halves of a backward
};

}  // namespace ferry
