// The ops that the calling thread runs below autograd, one by one: what LibTorch has a dispatch
// mode for in Python only.
//
// A dispatch key has one fallback in a process. This is the one of DispatchKey::Fake, the only key
// of LibTorch's that is unused, below autograd, and above all that computes. It sees an op where a
// thread includes the key (c10::impl::IncludeDispatchKeyGuard), which LibTorch carries to the
// engine's threads with a backward. What an op does inside is its own, and not seen.
//
// The scopes of selective checkpoints come first, the innermost before those around it; then the
// observer, to which an op that a scope answers did not run.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/DispatchKey.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <memory>

#include "shared/seam/checkpoint_options.h"

namespace ferry::real {

inline constexpr c10::DispatchKey kBelowAutograd = c10::DispatchKey::Fake;

// Runs the op: excludes kBelowAutograd and redispatches to the keys of `keys` below it.
using RunOp = void (*)(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                       torch::jit::Stack* stack);
void run_below(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

// While it lives, this thread's ops are not seen, and record no graph: those of a policy, of hooks,
// and those that look at another op.
class Aside {
 public:
  Aside() : key_(kBelowAutograd) {}

 private:
  const c10::impl::ExcludeDispatchKeyGuard key_;
  const c10::AutoGradMode no_grad_{false};
};

// Installs the fallback, once; throws c10::Error where the key is somebody else's.
void install_below_autograd();

// What happens to the ops of a thread.
class OpScope {
 public:
  OpScope() : outer_(current()) {}  // around the scope that it is made in
  OpScope(const OpScope&) = delete;
  OpScope& operator=(const OpScope&) = delete;
  virtual ~OpScope() = default;
  virtual void run(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                   torch::jit::Stack* stack) = 0;

  static std::shared_ptr<OpScope> current();  // null: none
  // Until the result dies, `scope` sees the ops of this thread, and those of backwards begun here.
  static CheckpointScope enter(std::shared_ptr<OpScope> scope);

 protected:
  void run_outside(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                   torch::jit::Stack* stack) const;

 private:
  const std::shared_ptr<OpScope> outer_;
};

// From now on ops run by `observer`, in place of run_below; null: by that again. One in a process.
void observe_below_autograd(RunOp observer);

}  // namespace ferry::real
