// Saved-tensor hooks for LibTorch in C++. They behave like
// torch.autograd.graph.saved_tensors_hooks.
//
//   ferry::SavedTensorsHooks hooks(
//       [](const torch::Tensor& x) { return std::make_pair(x.device(), x.cpu()); },
//       [](const auto& packed) { return packed.second.to(packed.first); });
//
// While a guard lives, `pack` gets every tensor that autograd saves for backward on this thread. It
// may return any type. `unpack` turns that back into a tensor whenever backward needs it: any
// number of times, on any thread, in any order. A backward that begins under a guard takes the
// guard to the engine's threads. Only the innermost guard applies.
//
//  * pack runs without grad mode and gets the saved tensor detached, so keeping it makes no cycle.
//    (PyTorch passes an op's output with its graph.) A pack that writes to its input is an error.
//  * Wrapped numbers and undefined tensors are not packed.
//  * Errors leave the op, or backward, with their type. If the pack of register_hooks throws, the
//    tensor stays saved as before.
//  * Compiled autograd unpacks everything when it reads the graph, before backward begins.
//  * Unlike in PyTorch, unpacking a tensor that was written in place after its save throws
//    ferry::ModifiedInPlace, as autograd does without hooks.
//
// Guards must end on their thread, in the reverse order of their construction; otherwise the
// program is aborted. The first guard of a process installs Ferry's autograd engine, so make it
// before the first backward. Linking Ferry does this at start-up.
#pragma once

#include <torch/csrc/autograd/saved_variable.h>
#include <torch/types.h>

#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "shared/seam/hooks.h"

namespace ferry {

namespace hooks_impl {

// A packed value, without its type.
class Packed {
 public:
  virtual ~Packed() = default;
  virtual torch::Tensor unpack() = 0;
};
using Pack = std::function<std::unique_ptr<Packed>(const torch::Tensor&)>;

template <class P, class Unpack>
class PackedAs final : public Packed {
 public:
  PackedAs(P packed, std::shared_ptr<const Unpack> unpack)
      : packed_(std::move(packed)), unpack_(std::move(unpack)) {}
  torch::Tensor unpack() override { return (*unpack_)(std::as_const(packed_)); }

 private:
  P packed_;
  std::shared_ptr<const Unpack> unpack_;
};

// The type that pack returns, if it can be stored.
template <class PackFunction>
requires std::copy_constructible<PackFunction> &&
    std::invocable<PackFunction&, const torch::Tensor&>
using PackedBy = std::decay_t<std::invoke_result_t<PackFunction&, const torch::Tensor&>>;

template <class PackFunction>
concept Packs = requires {
  requires !std::is_void_v<PackedBy<PackFunction>>;
};
template <class PackFunction, class UnpackFunction>
concept Unpacks = std::is_invocable_r_v < torch::Tensor,
        const UnpackFunction&, const PackedBy<PackFunction>
& > ;

template <class PackFunction, class UnpackFunction>
Pack erase(PackFunction pack, UnpackFunction unpack) {
  static_assert(Packs<PackFunction>,
                "ferry: expected a pack hook that can be copied, takes a const torch::Tensor& and "
                "returns what is to be kept");
  if constexpr (Packs<PackFunction>) {
    constexpr bool unpacks = Unpacks<PackFunction, UnpackFunction>;
    static_assert(unpacks,
                  "ferry: expected an unpack hook that takes what pack returns, as a const "
                  "reference, and returns a torch::Tensor; and a const one, no mutable lambda: "
                  "several threads may call it at once");
    if constexpr (unpacks) {
      auto shared = std::make_shared<const UnpackFunction>(std::move(unpack));
      return [pack = std::move(pack),
              shared](const torch::Tensor& tensor) mutable -> std::unique_ptr<Packed> {
        return std::make_unique<PackedAs<PackedBy<PackFunction>, UnpackFunction>>(pack(tensor),
                                                                                  shared);
      };
    }
  }
  return nullptr;
}

void register_hooks(torch::autograd::SavedVariable& variable, Pack pack);

// The frame that a guard of any kind pushes.
class Frame {
 public:
  explicit Frame(Pack pack);            // a pair of hooks
  Frame();                              // the no-op frame
  explicit Frame(std::string message);  // hooks are disabled
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;
  ~Frame();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hooks_impl

// True if these two types can be a pair of hooks.
template <class PackFunction, class UnpackFunction>
concept SavedTensorsPair = hooks_impl::Packs<std::decay_t<PackFunction>> &&
    hooks_impl::Unpacks<std::decay_t<PackFunction>, std::decay_t<UnpackFunction>>;

class SavedTensorsHooks {
 public:
  template <class PackFunction, class UnpackFunction>
  SavedTensorsHooks(PackFunction pack, UnpackFunction unpack)
      : frame_(hooks_impl::erase(std::move(pack), std::move(unpack))) {}

 private:
  hooks_impl::Frame frame_;
};

// Sets the hooks of one tensor that a node has saved already, such as a member of a node type in
// torch::autograd::generated or of your own. It behaves like PyTorch's SavedTensor.register_hooks,
// and throws in the same cases.
template <class PackFunction, class UnpackFunction>
void register_hooks(torch::autograd::SavedVariable& variable, PackFunction pack,
                    UnpackFunction unpack) {
  hooks_impl::register_hooks(variable, hooks_impl::erase(std::move(pack), std::move(unpack)));
}

// While it lives, no pair sees a tensor. Use it for regions that must be left alone, such as the
// output head.
class NoSavedTensorsHooks {
 public:
  NoSavedTensorsHooks() = default;

 private:
  hooks_impl::Frame frame_;
};

// Which hooks see saved tensors.
enum class HooksInForce {
  kNone,        // none: autograd saves the tensor itself
  kPair,        // a SavedTensorsHooks
  kOffload,     // an OffloadGuard
  kCheckpoint,  // those of a running checkpoint: saved tensors are not kept
  kOther,       // others, such as a capture's or Python's
};
// Returns the hooks that are in force on the calling thread. NoSavedTensorsHooks, NoOffloadGuard
// and DisableSavedTensorsHooks make it kNone while they live.
HooksInForce saved_tensor_hooks_in_force();

// While it lives, pushing a pair throws ferry::HooksDisabled with this message. The constructor
// throws it if a guard is in force already. PyTorch:
// torch.autograd.graph.disable_saved_tensors_hooks.
class DisableSavedTensorsHooks {
 public:
  explicit DisableSavedTensorsHooks(std::string message) : frame_(std::move(message)) {}

 private:
  hooks_impl::Frame frame_;
};

}  // namespace ferry
