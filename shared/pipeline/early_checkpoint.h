// A checkpoint in two halves, so that its recompute need not wait for the gradient.
//
//     forward:   checkpoint (no graph inside) ─▶ wait for the next stage ─▶ recompute (a phony)
//     backward:  recompute: the function runs again ─▶ wait for the gradient ─▶ checkpoint: a graph
//                task of its own over what was recomputed
//
// Backward runs the halves in the reverse order, so the function runs again while the gradient is
// still on its way from the next device. An edge says so: the first half gives a phony beside its
// outputs, and the second one takes it. Without that the order would be that of the nodes' numbers,
// which say nothing here: a worker numbers the first half, and the thread that began the step the
// second. As with the reentrant variant, only backwards that
// accumulate in leaves can go through it.
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
  // gradients of parameters flow through it. `keep`, called after the function, returns the further
  // values that a second run needs; they are saved like the inputs and appended to them. So is the
  // phony that the second half takes.
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

  // The second half; takes the inputs that the first half extended, and its outputs.
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
    // If the backward fails before the first half's turn, its result is dropped here.
    state_->autograd.after_task([weak = this->weak_from_this(), task] {
      if (const auto self = weak.lock()) self->take(task);
    });
  }
  // None if a backward began after the second half.
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

  // Backward goes from an output to which no gradient came as well, by an edge that carries none:
  // what was stashed has its turn there. So nothing gets a gradient that has none without a
  // checkpoint.
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
  std::vector<std::pair<GraphTaskId, Recomputed>> recomputed_;  // between halves of a backward
};

}  // namespace ferry
