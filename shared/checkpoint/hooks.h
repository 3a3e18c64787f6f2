// The hooks around a checkpoint: they see no tensor saved inside it, unless it is passed on.
//
// What is passed on goes to none that would make it again: neither to a checkpoint around, nor to a
// span of operators (shared/replay/span.h). These see as many tensors in a recompute as they saw
// before, and a recompute passes nothing on.
#pragma once

#include "shared/seam/hooks.h"

namespace ferry {

// The pairs of what makes the tensors again that are saved in it: checkpoints in their forward, and
// spans.
template <class Tensor>
class RecomputingPair : public Hooks<Tensor> {};
template <class Tensor>
class CheckpointPair : public RecomputingPair<Tensor> {};

// The innermost hooks outside this checkpoint, and outside all checkpoints and spans around it.
template <class Tensor>
HookStack<Tensor> around_checkpoints(HookStack<Tensor> stack) {
  while (stack.top && dynamic_cast<const RecomputingPair<Tensor>*>(stack.top->pair.get())) {
    stack.top = stack.top->outer;
  }
  return stack;
}

}  // namespace ferry
