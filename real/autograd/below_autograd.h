// Intercepts the ops that a thread runs below autograd, one by one. LibTorch has dispatch modes for
// this in Python only.
//
// A dispatch key can have one fallback per process. This is the fallback of DispatchKey::Fake, the
// only unused key of LibTorch below autograd and above the kernels. It sees an op if the thread
// includes the key (c10::impl::IncludeDispatchKeyGuard). A backward takes this setting to the
// engine's threads. Ops that run inside an op are not seen.
//
// The scopes of selective checkpoints see an op first, from the innermost to the outermost; then
// the observer sees it. If a scope returns kept results, the op does not run for those after it.
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

// Runs the op below this key: excludes kBelowAutograd and redispatches to the remaining `keys`.
using RunOp = void (*)(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                       torch::jit::Stack* stack);
void run_below(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

// While it lives, ops of this thread are not seen and record no graph. It is for the ops of
// policies and hooks, and for ops that inspect another op.
class Aside {
 public:
  Aside() : key_(kBelowAutograd) {}

 private:
  const c10::impl::ExcludeDispatchKeyGuard key_;
  const c10::AutoGradMode no_grad_{false};
};

// Installs the fallback once. Throws c10::Error if somebody else uses the key.
void install_below_autograd();

// Handles the ops of a thread.
class OpScope {
 public:
  OpScope() : outer_(current()) {}  // the scope around it is the current one
  OpScope(const OpScope&) = delete;
  OpScope& operator=(const OpScope&) = delete;
  virtual ~OpScope() = default;
  virtual void run(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                   torch::jit::Stack* stack) = 0;

  static std::shared_ptr<OpScope> current();  // returns null if there is none
  // Until the result is destroyed, `scope` sees the ops of this thread and of backwards that begin
  // here.
  static CheckpointScope enter(std::shared_ptr<OpScope> scope);

 protected:
  void run_outside(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                   torch::jit::Stack* stack) const;

 private:
  const std::shared_ptr<OpScope> outer_;
};

// From now on `observer` runs ops instead of run_below; null restores run_below. There is one
// observer per process.
void observe_below_autograd(RunOp observer);

}  // namespace ferry::real
