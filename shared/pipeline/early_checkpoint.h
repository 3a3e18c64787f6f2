// A checkpoint in two halves, so that its recompute need not wait for the gradient.
//
//     forward:   checkpoint (no graph inside) ─▶ wait for the next stage ─▶ recompute (a phony)
//     backward:  recompute: the function runs again ─▶ wait for the gradient ─▶ checkpoint: a graph
//                task of its own over what was recomputed
//
// Backward runs the halves in the reverse order, so the function runs again while the gradient is
// still on its way from the next device. As with the reentrant variant, only backwards that
// accumulate in leaves can go through it.
//
// Source: torchgpipe/checkpoint.py.
#pragma once

#include <functional>
#include <memory>
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

  // The first half: runs the function. Its outputs have a graph even where no input does: its
  // parameters' gradients come from there. `keep` gives what the function needs beside its inputs
  // when it runs again, and is asked afterwards; that is saved as these are, and added to them.
  Values checkpoint(Values& inputs, const std::function<Values()>& keep) {
    A& autograd = state_->autograd;
    Values outputs = region_.forward(inputs);
    for (Value& kept : keep()) inputs.push_back(std::move(kept));
    return autograd.function(with_phony(inputs), std::move(outputs),
                             [self = this->shared_from_this()](Values saved, Values gradients) {
                               return self->backward(std::move(saved), std::move(gradients));
                             });
  }

  // The second half, on what the first one left of its inputs and what it gave.
  void recompute(const Values& inputs, Values& outputs) {
    A& autograd = state_->autograd;
    Value& value = lane(autograd, outputs);
    const Values phony =
        autograd.function(with_phony(inputs), {autograd.phony(value)},
                          [self = this->shared_from_this()](Values saved, const Values&) {
                            const std::size_t count = saved.size();
                            saved.pop_back();
                            self->recomputed_ = self->region_.recompute(std::move(saved));
                            return Values(count);
                          });
    join(autograd, value, phony.front());
  }

 private:
  Values with_phony(Values inputs) const {
    A& autograd = state_->autograd;
    Value phony = autograd.phony(inputs.empty() ? Value() : inputs.front());
    inputs.push_back(autograd.leaf(autograd.tensor(phony), true));
    return inputs;
  }

  Values backward(Values saved, Values gradients) {
    saved.pop_back();
    auto recomputed = std::exchange(recomputed_, std::nullopt);
    if (!recomputed) recomputed = region_.recompute(std::move(saved));
    Values result = region_.gradients(std::move(*recomputed), std::move(gradients));
    result.emplace_back();
    return result;
  }

  const std::shared_ptr<CheckpointState<D, A>> state_;
  Region region_;
  std::optional<typename Region::Recomputed> recomputed_;  // between the halves of one backward
};

}  // namespace ferry
