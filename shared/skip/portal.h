// A portal carries one skip tensor of one micro-batch past the stages between its stash and its
// pop, hidden from autograd.
//
//     stash ──▶ blue ┄┄ phony ┄┄▶ join ─ … ─▶ fork ┄┄▶ copy ┄┄▶ join ─ … ─▶ fork ┄┄ phony ┄┄▶
//     orange ──▶ pop
//                 the micro-batch's own tensors, with edges that order backward:
//     gradient:   blue takes ◀── copy moves ◀── orange puts
//
// A portal drops its tensor when it is popped. If stages are checkpointed, the tensor is needed
// again. Then the stage that popped it owns it, as long as that stage may be recomputed; and what a
// recompute stashes again is not kept. In the ordinary case the tensor is freed when torchgpipe
// frees it too. torchgpipe counts uses ("lives"): 2 if the stage is not checkpointed, 3 if it is,
// and 1 for what a recompute stashes; the last use frees the tensor. Counting assumes exactly one
// whole recompute. Owning also works for several backwards, and for none.
//
// A popped tensor without a gradient gives the stashed tensor no gradient; in torchgpipe this is an
// error (pytorch#110775). Only one backward at a time may go through a portal.
//
// Source: torchgpipe/skip/portal.py, with its names.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "shared/seam/autograd.h"
#include "shared/seam/device.h"
#include "shared/seam/error.h"
#include "shared/skip/skip_rules.h"
#include "shared/skip/skippable.h"
#include "shared/transfer/dependency.h"
#include "shared/transfer/transfer.h"

namespace ferry {

template <PipelineDevice D, PipelineAutograd A>
class Portal : public std::enable_shared_from_this<Portal<D, A>> {
 public:
  using Value = typename A::Value;
  using Values = std::vector<Value>;
  using Tensor = typename D::Tensor;

  Portal(A autograd, const SkipRules& rules) : autograd_(std::move(autograd)), rules_(rules) {}

  // Stashes. Returns a phony that must be joined with the micro-batch before it leaves the stage.
  Value blue(const Value& stashed, bool again) {
    if (!again || !rules_.forgets_restash()) put(stashed);
    if (!autograd_.grad_mode() || !autograd_.requires_grad(stashed)) {
      gradient_ = Value();  // the first run did not know that it would not be taken
      return {};
    }
    return autograd_
        .node(std::array{stashed}, Values{autograd_.phony(stashed)},
              [self = this->shared_from_this()](const Values&) {
                return Values{std::exchange(self->gradient_, {})};
              })
        .front();
  }

  // Copies the tensor to the device that pops it. `value` carries the order of the micro-batch.
  void copy(const Transfer<D>& transfer, Value& value) {
    require();
    if (full()) {
      tensor_ = Transfer<D>(transfer).receive(*tensor_);
      Transfer<D>(transfer).take(std::array{*tensor_});
    }
    const typename D::StreamScope on(transfer.to().device, transfer.to().arrivals);
    Value phony = fork(autograd_, value);
    if (!autograd_.grad_mode() || !autograd_.requires_grad(phony)) return;
    phony = autograd_
                .node(std::array{phony}, Values{autograd_.phony(value)},
                      [self = this->shared_from_this(), back = transfer.back()](Values gradients) {
                        self->copy_back(back);
                        return gradients;
                      })
                .front();
    if (rules_.orders_portals()) join(autograd_, value, phony);
  }

  // Pops: the portal drops what was stashed and returns it.
  std::optional<Tensor> take() {
    require();
    stashed_ = !rules_.gives_up_popped();
    if (!full()) return std::nullopt;
    return rules_.gives_up_popped() ? std::exchange(tensor_, std::nullopt) : tensor_;
  }
  // Returns the popped tensor, in the graph of the stage that pops it. `phony` is forked from the
  // micro-batch of that stage. If it is empty, no gradient comes back.
  Value orange(const Tensor& taken, const Value& phony) {
    Value value = autograd_.leaf(taken, false);
    if (!wants_gradient_ || !autograd_.grad_mode() || !autograd_.requires_grad(phony)) return value;
    return autograd_
        .node(std::array{phony}, Values{value},
              [self = this->shared_from_this()](Values gradients) {
                self->gradient_ = std::move(gradients.front());
                return Values{{}};
              })
        .front();
  }

  // The tensor that the portal holds.
  const std::optional<Tensor>& tensor() const { return tensor_; }
  bool empty() const { return !full() && !autograd_.exists(gradient_); }

 private:
  bool full() const { return tensor_.has_value(); }
  void put(const Value& stashed) {
    stashed_ = true;
    tensor_.reset();
    if (!autograd_.exists(stashed)) return;
    tensor_ = autograd_.tensor(stashed);
    // A checkpointed stage has no graph yet.
    wants_gradient_ = autograd_.grad_mode() ? autograd_.requires_grad(stashed)
                                            : autograd_.differentiable(stashed);
  }
  void require() const {
    if (!stashed_) throw make_error<Tensor>(SkipError("tensor in portal has been removed"));
  }
  void copy_back(Transfer<D> back) {
    if (!autograd_.exists(gradient_)) return;
    back.send();
    const Tensor arrived = back.receive(autograd_.tensor(gradient_));
    back.take(std::array{arrived});
    gradient_ = autograd_.leaf(arrived, false);
  }

  A autograd_;
  const SkipRules rules_;
  bool stashed_ = false;  // stashed, perhaps an empty value, and not popped since
  bool wants_gradient_ = false;
  std::optional<Tensor> tensor_;
  Value gradient_;
};

}  // namespace ferry
