// Saved-tensor hooks for LibTorch, in C++: the semantics of
// torch.autograd.graph.saved_tensors_hooks.
//
//   ferry::SavedTensorsHooks hooks(
//       [](const torch::Tensor& x) { return std::make_pair(x.device(), x.cpu()); },
//       [](const auto& packed) { return packed.second.to(packed.first); });
//
// While a guard lives, every tensor that autograd saves for backward on this thread goes through
// `pack`, and what it returns (any type) through `unpack` when backward asks for it: any number of
// times, on any thread, in any order. A backward begun under a guard carries it to the engine's
// threads. The innermost guard alone applies.
//
//  * pack runs without grad mode, and is handed the saved tensor, detached: to keep it makes no
//    cycle (PyTorch hands an op's output with its graph). A pack that writes to its input is
//    refused.
//  * Wrapped numbers and undefined tensors are not packed.
//  * Errors leave the op, or backward, with their type. Where the pack of register_hooks throws,
//    the tensor is saved as it was.
//  * Compiled autograd unpacks everything when it reads the graph, before backward begins.
//  * Beyond PyTorch: unpacking a tensor that was written in place after it was saved throws
//    ferry::ModifiedInPlace, as autograd does without hooks.
//
// Guards end in the reverse order of their making, on their thread; a program that does otherwise
// is stopped. The first guard of a process installs Ferry's autograd engine: make it before the
// first backward (linking Ferry does so at start-up).
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

// A pair of hooks without its packed type.
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

// The type that pack returns, if it can be kept.
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

// The frame of a guard of any kind.
class Frame {
 public:
  explicit Frame(Pack pack);            // a pair
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

// True if the two can be a pair of hooks.
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

// Hooks of one tensor that a node has saved already (a member of torch::autograd::generated's node
// types, or of one's own): PyTorch's SavedTensor.register_hooks, with its refusals.
template <class PackFunction, class UnpackFunction>
void register_hooks(torch::autograd::SavedVariable& variable, PackFunction pack,
                    UnpackFunction unpack) {
  hooks_impl::register_hooks(variable, hooks_impl::erase(std::move(pack), std::move(unpack)));
}

// While it lives, no pair sees a tensor: for regions to leave alone, such as the output head.
class NoSavedTensorsHooks {
 public:
  NoSavedTensorsHooks() = default;

 private:
  hooks_impl::Frame frame_;
};

// Whose pair sees what is saved.
enum class HooksInForce {
  kNone,        // nobody's: autograd saves the tensor itself
  kPair,        // a SavedTensorsHooks
  kOffload,     // an OffloadGuard
  kCheckpoint,  // a checkpoint's function is running, and what it saves is not kept
  kOther,       // another's: a capture's, or one of Python's own
};
// On the calling thread, now. NoSavedTensorsHooks, NoOffloadGuard and DisableSavedTensorsHooks make
// it kNone for their scope.
HooksInForce saved_tensor_hooks_in_force();

// While it lives, pushing a pair throws ferry::HooksDisabled with this message. The constructor
// throws it if a guard is in force already (torch.autograd.graph.disable_saved_tensors_hooks).
class DisableSavedTensorsHooks {
 public:
  explicit DisableSavedTensorsHooks(std::string message) : frame_(std::move(message)) {}

 private:
  hooks_impl::Frame frame_;
};

}  // namespace ferry
