// Finds the hooks around a checkpoint, for tensors that it gives to them.
//
// These hooks must not belong to anything that recomputes: neither to an outer checkpoint nor to a
// span of operators (shared/replay/span.h). Those must see as many tensors in a recompute as they
// saw in forward, but a recompute gives no tensors away.
#pragma once

#include "shared/seam/hooks.h"

namespace ferry {

// The base of hooks that recompute what is saved under them: those of checkpoints in their forward,
// and those of spans.
template <class Tensor>
class RecomputingPair : public Hooks<Tensor> {};
template <class Tensor>
class CheckpointPair : public RecomputingPair<Tensor> {};

// Returns the innermost hooks outside this checkpoint and outside all checkpoints and spans around
// it.
template <class Tensor>
HookStack<Tensor> around_checkpoints(HookStack<Tensor> stack) {
  while (stack.top && dynamic_cast<const RecomputingPair<Tensor>*>(stack.top->pair.get())) {
    stack.top = stack.top->outer;
  }
  return stack;
}

}  // namespace ferry
