// Connects the core's hooks to LibTorch: where their stack is stored, and what a node stores for a
// packed tensor.
//
//   guard ──► HookStack in a slot of the thread ──► engine: innermost pair? ──► SavedByPair in node
//
// The stack is in a slot that LibTorch copies to the engine's threads with a backward (slots.h). A
// scope puts a new stack into the slot, and the old one back at its end. The engine decides which
// pair sees a tensor. In a C++ program it calls `innermost_pair` (real/engine/engine.cpp). Python's
// engine also has its own stack of hooks (real/python/engine.cpp): a pair of Ferry applies until
// that stack becomes deeper than it was when the pair was pushed.
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
  const std::size_t others = other_hooks_depth();  // depth of the other stack at the push

  // Returns the slot of the calling thread; null if nothing was ever pushed.
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

// Returns the stack of the calling thread, if at most `others` pairs were on the other stack
// (engine.h) at its push. Otherwise a pair on the other stack is innermost, and the result is null.
// It is also null if nothing was ever pushed.
inline const HookStack<at::Tensor>* innermost_of_ours(std::size_t others) {
  const HooksSlot* const now = HooksSlot::current();
  return now && now->others >= others ? &now->stack : nullptr;
}

// Returns the pair that sees the saved tensors of the calling thread in a C++ program, or null if
// none does. It is null while compiled autograd traces a graph, because the saved tensors have no
// bytes then.
inline std::shared_ptr<Hooks<at::Tensor>> innermost_pair() {
  const HookStack<at::Tensor>* const ours = innermost_of_ours(0);
  if (!ours || ours->disabled || !ours->top) return nullptr;
  if (at::SavedTensorDefaultHooks::get_tls_state().is_tracing) return nullptr;
  return ours->top->pair;
}

// A pair of hooks in the form that LibTorch needs: one object for each saved tensor. It keeps the
// pair alive while its pack runs, even if the pack pops it; afterwards it needs only the packed
// value.
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
  // Compiled autograd asks for Python hooks, so that compiled code can call them. Ferry's hooks are
  // not Python's. So it unpacks each tensor when it reads the graph, as if there were no hooks.
  // Gradients are the same, but all saved tensors are back on the device before backward begins.
  std::optional<std::pair<c10::SafePyObject, c10::SafePyObject>> retrieve_unpack_hook_data()
      const override {
    return std::nullopt;
  }

 private:
  std::shared_ptr<Hooks<at::Tensor>> pair_;
  std::unique_ptr<Saved<at::Tensor>> saved_;
};

}  // namespace ferry::real
