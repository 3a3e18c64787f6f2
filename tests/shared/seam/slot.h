// The smallest world that hooks and contexts ask for: a tensor is its name, and an autograd is the
// slot that holds the hook stack.
#pragma once

#include <string>
#include <utility>

#include "shared/seam/error.h"
#include "shared/seam/hooks.h"

template <>
struct ferry::Exceptions<std::string> : ferry::Exceptions<void> {};

namespace ferry::test {

struct Slot {
  using Tensor = std::string;
  HookStack<Tensor>* stack;
  HookStack<Tensor> hooks() const { return *stack; }
  struct HooksScope : ReplacedHooks<Tensor> {
    HooksScope(Slot slot, HookStack<Tensor> next) : ReplacedHooks(*slot.stack, std::move(next)) {}
  };
};

}  // namespace ferry::test
