// The hooks around a checkpoint: they see no tensor saved inside it, unless it is passed on.
#pragma once

#include "shared/seam/hooks.h"

namespace ferry {

// The pairs that checkpoints push for their forward.
template <class Tensor>
class CheckpointPair : public Hooks<Tensor> {};

// The innermost hooks outside this checkpoint and outside all that enclose it.
template <class Tensor>
HookStack<Tensor> around_checkpoints(HookStack<Tensor> stack) {
  while (stack.top && dynamic_cast<const CheckpointPair<Tensor>*>(stack.top->pair.get())) {
    stack.top = stack.top->outer;
  }
  return stack;
}

}  // namespace ferry
