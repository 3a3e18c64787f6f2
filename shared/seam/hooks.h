// Saved-tensor hooks: the pair that autograd calls when a node saves a tensor, and the stack of
// pairs. They are how the core sees what backward needs: the offloader
// (shared/offload/offload_core.h) and checkpoints (shared/checkpoint) are such pairs. LibTorch's
// and the simulator's autograd both use this stack, so the core is the same in both.
//
// They behave like torch.autograd.graph.saved_tensors_hooks. Only the innermost pair sees a tensor.
// A no-op frame hides the pairs outside it. While hooks are disabled, pushing a pair throws the
// message that disabled them. The stack is an immutable linked list. It sits in a slot that travels
// with the graph task to the engine's threads (shared/seam/autograd.h), so copying the slot takes a
// snapshot.
//
// `pack` runs without grad mode on the thread that runs the op. Autograd owns its result, and drops
// it with the saved tensors of the node. `unpack` may run on any thread and any number of times.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "shared/seam/error.h"
#include "shared/seam/statistics.h"

namespace ferry {

struct CheckpointContext;  // shared/seam/checkpoint_context.h

template <class Tensor>
class Saved {
 public:
  virtual ~Saved() = default;
  virtual Tensor unpack() = 0;
};

template <class Tensor>
class Hooks {
 public:
  virtual ~Hooks() = default;
  virtual std::unique_ptr<Saved<Tensor>> pack(const Tensor& tensor) = 0;
};

// The hooks of an offloader, and its other calls, without the type of its device. They are for
// programs that learn at run time which devices there are. shared/offload/offload_core.h implements
// them.
template <class Tensor>
class OffloadHooks : public Hooks<Tensor> {
 public:
  // This parameter or buffer is never offloaded, even if it gets another storage later.
  virtual void exempt(const Tensor& tensor) = 0;
  // Begins a new forward: packs are counted from 0 again.
  virtual void begin_run() = 0;
  // Sets the run and ordinal of the next pack. Several offloaders may share a forward, one for each
  // device; each then skips the ordinals of the packs that the others took.
  virtual void continue_at(std::uint64_t run, std::uint64_t pack) = 0;
  virtual OffloadStatistics statistics() = 0;
  // True if nothing is left: no parcel, no stashed storage and no task.
  virtual bool empty() = 0;
};

class HooksDisabled : public Error {
 public:
  using Error::Error;
};

// Thrown when a tensor is unpacked that was written in place after it was saved. Autograd has this
// check itself, but not for tensors that hooks packed.
class ModifiedInPlace : public Error {
 public:
  ModifiedInPlace(std::uint64_t version, std::uint64_t expected)
      : Error(
            "one of the variables needed for gradient computation has been modified by an "
            "inplace operation: it is at version " +
            std::to_string(version) + "; expected version " + std::to_string(expected) +
            " instead") {}

 protected:
  explicit ModifiedInPlace(const std::string& what) : Error(what) {}
};

// Thrown when the storage of a saved tensor has other memory than at its save: it was resized, or
// its data pointer was set. No version counter counts these changes.
class StorageReplaced : public ModifiedInPlace {
 public:
  StorageReplaced()
      : ModifiedInPlace(
            "one of the variables needed for gradient computation has lost the memory that it had "
            "when it was saved: its storage was resized, or its data pointer was set") {}
};

template <class Tensor>
struct HookFrame {
  std::shared_ptr<Hooks<Tensor>> pair;  // if null: a no-op frame
  std::shared_ptr<const HookFrame> outer;
};

// The content of the slot.
template <class Tensor>
struct HookStack {
  std::shared_ptr<const HookFrame<Tensor>> top;
  std::shared_ptr<const std::string> disabled;  // the error message, while hooks are disabled
  std::shared_ptr<const CheckpointContext> checkpoint;

  // Returns null if no pair applies. Autograd then saves the tensor itself.
  std::unique_ptr<Saved<Tensor>> pack(const Tensor& tensor) const {
    if (disabled || !top || !top->pair) return nullptr;
    const std::shared_ptr<Hooks<Tensor>> pair = top->pair;  // alive even if its own pack pops it
    return pair->pack(tensor);
  }
};

// A scope for a slot that is a plain variable. The slot holds `next` until the scope ends.
template <class Tensor>
class ReplacedHooks {
 public:
  ReplacedHooks(HookStack<Tensor>& slot, HookStack<Tensor> next)
      : slot_(slot), before_(std::exchange(slot, std::move(next))) {}
  ReplacedHooks(const ReplacedHooks&) = delete;
  ReplacedHooks& operator=(const ReplacedHooks&) = delete;
  ~ReplacedHooks() { slot_ = std::move(before_); }

 private:
  HookStack<Tensor>& slot_;
  HookStack<Tensor> before_;
};

namespace hooks_detail {

// Pushes a frame and restores the slot at its end, whatever happened inside. If another frame is on
// top at the end, the program popped ours, which is a bug: the process aborts.
template <class A>
class Frame {
 public:
  using Tensor = typename A::Tensor;

  // `context` is for the checkpoints inside; null keeps the current context.
  Frame(A autograd, std::shared_ptr<Hooks<Tensor>> pair,
        std::shared_ptr<const CheckpointContext> context = nullptr)
      : autograd_(std::move(autograd)) {
    HookStack<Tensor> stack = autograd_.hooks();
    if (pair && stack.disabled) throw make_error<Tensor>(HooksDisabled(*stack.disabled));
    if (context) stack.checkpoint = std::move(context);
    frame_ = std::make_shared<const HookFrame<Tensor>>(
        HookFrame<Tensor>{std::move(pair), std::move(stack.top)});
    stack.top = frame_;
    scope_.emplace(autograd_, std::move(stack));
  }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;
  ~Frame() {
    if (autograd_.hooks().top != frame_) std::abort();
  }

 private:
  A autograd_;
  std::shared_ptr<const HookFrame<Tensor>> frame_;
  std::optional<typename A::HooksScope> scope_;  // last: destroyed after the destructor's check
};

}  // namespace hooks_detail

// While it lives, `pair` sees every tensor that is saved on this thread, and in the backwards that
// begin here.
template <class A>
class HooksGuard {
 public:
  HooksGuard(A autograd, std::shared_ptr<Hooks<typename A::Tensor>> pair,
             std::shared_ptr<const CheckpointContext> context = nullptr)
      : frame_(std::move(autograd), std::move(pair), std::move(context)) {}

 private:
  hooks_detail::Frame<A> frame_;
};

// While it lives, no pair sees a tensor. Use it for regions that must not be offloaded, such as the
// output head.
template <class A>
class NoHooksGuard {
 public:
  explicit NoHooksGuard(A autograd) : frame_(std::move(autograd), nullptr) {}

 private:
  hooks_detail::Frame<A> frame_;
};

// While it lives, pushing a pair throws HooksDisabled(message). The constructor itself throws it if
// a frame is already installed.
template <class A>
class DisableHooksGuard {
 public:
  DisableHooksGuard(A autograd, std::string message) {
    auto stack = autograd.hooks();
    if (stack.top) throw make_error<typename A::Tensor>(HooksDisabled(message));
    stack.disabled = std::make_shared<const std::string>(std::move(message));
    scope_.emplace(std::move(autograd), std::move(stack));
  }

 private:
  std::optional<typename A::HooksScope> scope_;
};

}  // namespace ferry
