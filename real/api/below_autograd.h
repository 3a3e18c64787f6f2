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

namespace ferry::real {

inline constexpr c10::DispatchKey kBelowAutograd = c10::DispatchKey::Fake;

// Runs the op: excludes kBelowAutograd and redispatches to the keys of `keys` below it.
using RunOp = void (*)(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                       torch::jit::Stack* stack);
void run_below(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

// Installs the fallback, once; throws c10::Error where the key is somebody else's.
void install_below_autograd();
// From now on ops run by `observer`, in place of run_below; null: by that again. One in a process.
void observe_below_autograd(RunOp observer);

}  // namespace ferry::real
