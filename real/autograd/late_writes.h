// Ops that save a tensor before they fill it.
//
// LibTorch saves what it needs of an op's arguments before it runs the op. RReLU in training mode
// fills one of them, its noise, and does not say so in its version: a hook that copies when it is
// called copies what was there before, and a recompute that stops at that call leaves before the op
// ran. While such an op runs, packing waits for its end.
//
// The ops are few and known by name. They are seen by a kernel
// on a dispatch key above autograd, which is in force where hooks are, and which all others fall
// through: they pay nothing.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DispatchKey.h>

#include <memory>
#include <utility>
#include <vector>

#include "shared/seam/hooks.h"

namespace ferry::real {

// LibTorch keeps it for tests, and has no kernel on it.
inline constexpr c10::DispatchKey kLateWrites = c10::DispatchKey::TESTING_ONLY_GenericMode;

// Once; throws c10::Error where the key is somebody else's.
void install_late_writes();

// While it lives, what this thread packs waits for `finish`. Where that is not called, because the
// op raised, nothing is packed, and the graph that would ask for it is never made.
class LatePacks {
 public:
  LatePacks() : outer_(std::exchange(current_, this)) {}
  LatePacks(const LatePacks&) = delete;
  LatePacks& operator=(const LatePacks&) = delete;
  ~LatePacks() { current_ = outer_; }

  static LatePacks* current() { return current_; }
  std::unique_ptr<Saved<at::Tensor>> add(std::shared_ptr<Hooks<at::Tensor>> pair,
                                         const at::Tensor& tensor);
  // Packs in the order of saving. What a pack throws leaves the op.
  void finish();

 private:
  struct Late;
  class Save;
  static thread_local LatePacks* current_;
  LatePacks* const outer_;
  std::vector<std::shared_ptr<Late>> late_;
};

}  // namespace ferry::real
