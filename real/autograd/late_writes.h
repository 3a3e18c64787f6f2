// Handles ops that save a tensor before they fill it.
//
// LibTorch saves arguments before it runs an op. RReLU in training mode fills one of them, its
// noise, without changing its version. A hook that copies immediately would copy the old contents,
// and a recompute that stops at this save would leave before the op ran. So packing waits until
// such an op has ended.
//
// There are few such ops, and their names are known. A kernel on a dispatch key above autograd
// handles them. The key is active where hooks are, and all other ops fall through it at no cost.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DispatchKey.h>

#include <memory>
#include <utility>
#include <vector>

#include "shared/seam/hooks.h"

namespace ferry::real {

// LibTorch reserves this key for tests and has no kernel on it.
inline constexpr c10::DispatchKey kLateWrites = c10::DispatchKey::TESTING_ONLY_GenericMode;

// Installs the kernels once. Throws c10::Error if somebody else uses the key.
void install_late_writes();

// While it lives, packs of this thread wait for `finish`. If `finish` is not called because the op
// threw, nothing is packed; the graph that would unpack it is never made.
class LatePacks {
 public:
  LatePacks() : outer_(std::exchange(current_, this)) {}
  LatePacks(const LatePacks&) = delete;
  LatePacks& operator=(const LatePacks&) = delete;
  ~LatePacks() { current_ = outer_; }

  static LatePacks* current() { return current_; }
  std::unique_ptr<Saved<at::Tensor>> add(std::shared_ptr<Hooks<at::Tensor>> pair,
                                         const at::Tensor& tensor);
  // Packs in the order of saving. An error of a pack leaves the op.
  void finish();

 private:
  struct Late;
  class Save;
  static thread_local LatePacks* current_;
  LatePacks* const outer_;
  std::vector<std::shared_ptr<Late>> late_;
};

}  // namespace ferry::real
