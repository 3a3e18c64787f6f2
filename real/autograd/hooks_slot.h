// The two ends of the core's hooks in LibTorch: where the stack of them lies, and what a node holds
// of a tensor that a pair packed.
//
//   guard ──► HookStack in a slot of the thread ──► engine: innermost pair? ──► SavedByPair in node
//
// The stack lies in a slot that LibTorch carries to the engine's threads with a backward (slots.h),
// so a scope puts a new stack there and the old one back. Which pair sees a tensor is the engine's
// question: a C++ program's asks `innermost_pair` (real/engine/engine.cpp), Python's looks at its
// own stack of hooks as well (real/python/engine.cpp). One of ours applies until that other stack
// grows beyond what it found there.
#pragma once

#include <ATen/SavedTensorHooks.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "real/autograd/engine.h"
#include "real/autograd/late_writes.h"
#include "real/autograd/slots.h"
#include "real/autograd/thread_end.h"
#include "shared/seam/hooks.h"

namespace ferry::real {

struct HooksSlot final : c10::DebugInfoBase {
  explicit HooksSlot(HookStack<at::Tensor> hooks) : stack(std::move(hooks)) {}
  const HookStack<at::Tensor> stack;
  const std::size_t others = other_hooks_depth();  // around it

  // The calling thread's; none where nothing was ever pushed.
  static const HooksSlot* current() {
    return static_cast<const HooksSlot*>(c10::ThreadLocalDebugInfo::get(kHooksSlot));
  }
};

// While it lives, the slot holds these hooks.
class HooksSlotScope {
 public:
  explicit HooksSlotScope(HookStack<at::Tensor> hooks)
      : guard_(kHooksSlot, std::make_shared<HooksSlot>(std::move(hooks))),
        late_writes_(kLateWrites) {
    install_engine();
    install_late_writes();
    watch_thread_end();
  }

 private:
  c10::DebugInfoGuard guard_;
  c10::impl::IncludeDispatchKeyGuard late_writes_;
};

// The hooks on the calling thread's stack, where no more than so many pairs are on the other one
// (engine.h): else that one's are innermost. None as well where nothing was ever pushed.
inline const HookStack<at::Tensor>* innermost_of_ours(std::size_t others) {
  const HooksSlot* const now = HooksSlot::current();
  return now && now->others >= others ? &now->stack : nullptr;
}

// In a C++ program, the pair that sees what the calling thread saves now; none where no pair
// applies, and while compiled autograd traces a graph: what is saved then stands for a tensor, and
// has no bytes.
inline std::shared_ptr<Hooks<at::Tensor>> innermost_pair() {
  const HookStack<at::Tensor>* const ours = innermost_of_ours(0);
  if (!ours || ours->disabled || !ours->top) return nullptr;
  if (at::SavedTensorDefaultHooks::get_tls_state().is_tracing) return nullptr;
  return ours->top->pair;
}

// A pair of hooks as LibTorch wants it: one object for each saved tensor. The pair survives a pop
// by its own pack; after it, what was packed is enough.
class SavedByPair final : public torch::autograd::SavedVariableHooks {
 public:
  explicit SavedByPair(std::shared_ptr<Hooks<at::Tensor>> pair) : pair_(std::move(pair)) {}

  void call_pack_hook(const at::Tensor& tensor) override {
    auto pair = std::exchange(pair_, nullptr);
    LatePacks* const late = LatePacks::current();
    saved_ = late ? late->add(std::move(pair), tensor) : pair->pack(tensor);
  }
  at::Tensor call_unpack_hook() override {
    at::Tensor tensor = saved_->unpack();
    TORCH_CHECK_TYPE(tensor.defined(),
                     "Output of saved tensor unpack hook expected to be a Tensor but got an "
                     "undefined one");
    return tensor;
  }
  // Compiled autograd asks for Python's hooks, to call them from what it compiles. Ours are none of
  // Python's: as with a tensor that has no hooks it is to unpack each one when it reads the graph.
  // Gradients are the same; but everything that was saved is back before backward begins.
  std::optional<std::pair<c10::SafePyObject, c10::SafePyObject>> retrieve_unpack_hook_data()
      const override {
    return std::nullopt;
  }

 private:
  std::shared_ptr<Hooks<at::Tensor>> pair_;
  std::unique_ptr<Saved<at::Tensor>> saved_;
};

}  // namespace ferry::real
