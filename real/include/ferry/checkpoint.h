// Activation checkpointing for LibTorch, in C++: the semantics of torch.utils.checkpoint.
//
//   auto y = ferry::checkpoint(block, x);                     // block(x), recomputed in backward
//   auto y = ferry::checkpoint([&](const auto& x, const auto& w, int n) { ... }, x, w, 3);
//   auto y = ferry::checkpoint(ferry::CheckpointOptions().early_stop(false), block, x);
//
// What the function saves for backward is dropped, and computed again, once for each backward, when
// backward asks for it. Values and gradients are the same bits as without, and so are derivatives
// of any order, several backwards through one graph, backwards inside the function, and checkpoints
// inside checkpoints.
//
// Functions and arguments. The function (anything that can be called, or a module) and its
// arguments are copied or moved into the graph, as into std::thread: pass std::ref for a reference.
// The function is called here, and again for each recompute, maybe on one of autograd's threads,
// maybe on several at once where several threads go backward through one graph. Each tensor
// argument is saved as a node saves its inputs: by the hooks in force (an OffloadGuard's, say), and
// with its version, so that a tensor which is written in place before it is needed is an error. It
// is handed over as an lvalue of the call's own. The other arguments are handed over as const
// lvalues, the same at every call. Tensors within them (containers, structs, optionals) or captured
// by the function are plain references: no hooks see them, nobody notices when they are written,
// and an outer checkpoint does not recompute them. Whatever the function returns is returned.
//
// The function is to do the same again: same ops, same shapes. Random numbers and autocast are
// replayed (CheckpointOptions); what else it depends on must not change. Side effects (a
// BatchNorm's running statistics) happen once more in every recompute unless the function asks
// is_recomputing(). Exceptions that are not the function's own must pass through it: by one of
// them a recompute ends early.
//
// The CPU's generator is the process's: where one thread recomputes random numbers while another
// draws some, neither's are replayed.
//
// Without grad mode the function just runs.
//
// Errors: CheckpointError where a recompute saves other tensors than forward did, or a recomputed
// tensor is asked for twice in one backward (a custom function that unpacks its saved variables
// twice); std::invalid_argument for options that contradict each other; std::runtime_error where an
// accelerator was first used within a checkpoint. What the function throws leaves backward with its
// type; the next backward tries again.
//
// Models torch/utils/checkpoint.py of PyTorch 2.11 (both variants, GraphExecGroup,
// checkpoint_sequential). Not modelled: its early_stop and debug switches are process globals,
// ours are the thread's; a context_fn's forward scope cannot swallow exceptions.
#pragma once

#include <torch/arg.h>
#include <torch/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "shared/checkpoint/errors.h"
#include "shared/seam/checkpoint_options.h"

namespace torch::nn {
class Sequential;
}

namespace ferry {

class ExecGroup;  // shared/seam/checkpoint_context.h

struct CheckpointOptions {
  CheckpointOptions() = default;

  // A recompute ends as soon as everything that forward saved is there again, by an exception
  // through the function. An op that saves its inputs is then entered but does not run; one that
  // saves its output has run. (Turn it off where a torch::autograd::Function that saves its own
  // output is the last to save: LibTorch leaks that output when saving throws.)
  TORCH_ARG(bool, early_stop) = true;
  // Random numbers of a recompute are those of forward: of the CPU's default generator and those of
  // the devices where tensor arguments are. Afterwards the generators go on as if nothing had run.
  TORCH_ARG(bool, preserve_rng_state) = true;
  // Shape, dtype and device of what a recompute saves are compared with forward's.
  TORCH_ARG(DeterminismCheck, determinism_check) = DeterminismCheck::kDefault;
  // Log every op in forward and in recomputes, so that an error names the first that differs.
  TORCH_ARG(bool, debug) = false;
  // The reentrant variant (use_reentrant=True): forward makes no graph within the function, and
  // backward runs the whole of it again, with a backward of its own over that. It takes backward()
  // without `inputs`, and no grad(); at least one argument and one output that require grad;
  // functions that return a tensor, a vector, an array or a tuple of tensors. Of the other options
  // preserve_rng_state alone applies; debug, context_fn and choices are refused.
  TORCH_ARG(bool, reentrant) = false;
  // Called once for each call of checkpoint, before the function: makes guards of the user's for
  // forward and for each recompute.
  TORCH_ARG(std::function<CheckpointContexts()>, context_fn);
  // What becomes of the tensors that the function saves, in the order of saving: recomputed, kept,
  // or given to the hooks around the checkpoint (an OffloadGuard's). Past the end: recomputed.
  TORCH_ARG(std::vector<SavedChoice>, choices);
};

namespace checkpoint_impl {

using Tensors = std::vector<torch::Tensor>;
using Run = std::function<void(Tensors)>;
using Map = std::function<Tensors(Tensors)>;

// `forward` runs now, `again` for each recompute.
void run(const CheckpointOptions& options, Tensors inputs, Run again, Run forward);
Tensors run_reentrant(const CheckpointOptions& options, const Tensors& inputs, Map function);
[[noreturn]] void refuse_output();

// A module is called as its `forward`, through a holder or a pointer.
template <class Function, class... Arguments>
decltype(auto) invoke(Function& function, Arguments&... arguments) {
  if constexpr (requires { function->forward(arguments...); }) {
    return function->forward(arguments...);
  } else {
    return std::invoke(function, arguments...);
  }
}

// A function and its arguments; in the place of tensors nothing, until it is called with them.
template <class Function, class... Arguments>
class Call {
  template <class Argument>
  static constexpr bool kTensor = std::is_same_v<Argument, torch::Tensor>;
  template <class Argument>
  using Handed = std::conditional_t<kTensor<Argument>, Argument&, const Argument&>;

 public:
  using Result = std::remove_cvref_t<decltype(invoke(std::declval<Function&>(),
                                                     std::declval<Handed<Arguments>>()...))>;

  template <class F, class... A>
  explicit Call(Tensors& inputs, F&& function, A&&... arguments)
      : function_(std::forward<F>(function)), arguments_(std::forward<A>(arguments)...) {
    std::apply([&](auto&... argument) { (take(inputs, argument), ...); }, arguments_);
  }

  Result operator()(Tensors inputs) {
    return call(inputs, std::index_sequence_for<Arguments...>());
  }

 private:
  template <class Argument>
  static void take(Tensors& inputs, Argument& argument) {
    if constexpr (kTensor<Argument>) inputs.push_back(std::exchange(argument, {}));
  }

  // Which of the tensors argument `I` is.
  template <std::size_t I>
  static constexpr std::size_t place() {
    constexpr std::array<bool, sizeof...(Arguments) + 1> tensors{kTensor<Arguments>..., false};
    std::size_t before = 0;
    for (std::size_t i = 0; i < I; ++i) before += tensors[i] ? 1 : 0;
    return before;
  }
  template <std::size_t I>
  decltype(auto) argument(Tensors& inputs) {
    if constexpr (kTensor<std::tuple_element_t<I, std::tuple<Arguments...>>>) {
      return (inputs[place<I>()]);
    } else {
      return std::as_const(std::get<I>(arguments_));
    }
  }
  template <std::size_t... I>
  Result call([[maybe_unused]] Tensors& inputs, std::index_sequence<I...>) {
    return invoke(function_, argument<I>(inputs)...);
  }

  Function function_;
  std::tuple<Arguments...> arguments_;
};

// What a reentrant function may return, as a vector and back.
inline Tensors to_tensors(torch::Tensor tensor) { return {std::move(tensor)}; }
inline Tensors to_tensors(Tensors tensors) { return tensors; }
template <class Tuple>
requires requires { std::tuple_size<Tuple>::value; }
auto to_tensors(Tuple tuple)
    -> decltype(std::apply([](auto&... tensor) { return Tensors{tensor...}; }, tuple)) {
  return std::apply([](auto&... tensor) { return Tensors{tensor...}; }, tuple);
}
template <class Result>
Result from_tensors(Tensors tensors) {
  if constexpr (std::is_same_v<Result, torch::Tensor>) {
    return std::move(tensors.front());
  } else if constexpr (std::is_same_v<Result, Tensors>) {
    return tensors;
  } else {
    Result result;
    std::size_t i = 0;
    std::apply([&](auto&... tensor) { ((tensor = std::move(tensors[i++])), ...); }, result);
    return result;
  }
}

template <class Result, class Function>
Result reentrant(const CheckpointOptions& options, const Tensors& inputs,
                 const std::shared_ptr<Function>& call) {
  if constexpr (requires(Result result) { to_tensors(std::move(result)); }) {
    return from_tensors<Result>(run_reentrant(
        options, inputs, [call](Tensors again) { return to_tensors((*call)(std::move(again))); }));
  } else {
    refuse_output();
  }
}

}  // namespace checkpoint_impl

template <class Function, class... Arguments>
auto checkpoint(const CheckpointOptions& options, Function&& function, Arguments&&... arguments) {
  using Bound = checkpoint_impl::Call<std::decay_t<Function>, std::decay_t<Arguments>...>;
  using Result = typename Bound::Result;
  checkpoint_impl::Tensors inputs;
  const auto call = std::make_shared<Bound>(inputs, std::forward<Function>(function),
                                            std::forward<Arguments>(arguments)...);
  if (options.reentrant()) return checkpoint_impl::reentrant<Result>(options, inputs, call);
  const auto again = [call](checkpoint_impl::Tensors tensors) { (*call)(std::move(tensors)); };
  if constexpr (std::is_void_v<Result>) {
    checkpoint_impl::run(options, std::move(inputs), again, again);
  } else {
    std::optional<Result> result;
    checkpoint_impl::run(options, std::move(inputs), again, [&](checkpoint_impl::Tensors tensors) {
      result.emplace((*call)(std::move(tensors)));
    });
    return std::move(*result);
  }
}

template <class Function, class... Arguments>
requires(!std::is_same_v<std::remove_cvref_t<Function>, CheckpointOptions>) auto checkpoint(
    Function&& function, Arguments&&... arguments) {
  return checkpoint(CheckpointOptions(), std::forward<Function>(function),
                    std::forward<Arguments>(arguments)...);
}

// Runs a chain in `segments` parts of equal length, each a checkpoint but the last, which takes the
// remainder: its backward comes at once. One tensor in, one out. Throws std::invalid_argument
// unless 1 <= segments <= length. The options are each segment's.
torch::Tensor checkpoint_sequential(const torch::nn::Sequential& functions, std::int64_t segments,
                                    torch::Tensor input, const CheckpointOptions& options = {});
torch::Tensor checkpoint_sequential(
    std::vector<std::function<torch::Tensor(torch::Tensor)>> functions, std::int64_t segments,
    torch::Tensor input, const CheckpointOptions& options = {});

// Whether the calling thread is within a checkpointed function; whether in one that runs again for
// backward, or in what that calls.
bool is_checkpointing();
bool is_recomputing();

namespace checkpoint_impl {

// A change to what checkpoints on this thread find, for a scope.
class Scope {
 public:
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  ~Scope();

 protected:
  struct State;
  explicit Scope(std::unique_ptr<State> state);

 private:
  std::unique_ptr<State> state_;
};

}  // namespace checkpoint_impl

// While it lives, overrides the early_stop of all checkpoints that run forward on this thread; the
// innermost guard wins. What ran under it stays as it said, whenever backward comes.
class CheckpointEarlyStopGuard : public checkpoint_impl::Scope {
 public:
  explicit CheckpointEarlyStopGuard(bool early_stop);
};

// The same for debug.
class CheckpointDebugGuard : public checkpoint_impl::Scope {
 public:
  explicit CheckpointDebugGuard(bool debug);
};

// Several backwards over disjoint parts of one graph that share what is recomputed (the parts of a
// zero-bubble pipeline's backward):
//
//   ferry::GraphExecGroup group;
//   {
//     const ferry::GraphExecGroup::Guard guard(group);
//     torch::autograd::grad({loss}, {x}, {}, /*retain_graph=*/true);
//     torch::autograd::grad({loss}, {w});
//   }
//
// What was recomputed and not used lives until the last copy of the group, and its guards, are
// gone. A tensor that two of the backwards need is an error (CheckpointError). One group may be
// entered again; guards within a guard throw std::runtime_error. A copy is the same group.
class GraphExecGroup {
 public:
  GraphExecGroup();

  // Of this thread, and of the backwards begun on it.
  class Guard : public checkpoint_impl::Scope {
   public:
    explicit Guard(const GraphExecGroup& group);
  };

 private:
  std::shared_ptr<ExecGroup> group_;
};

// Of all checkpoints of this process.
CheckpointStatistics checkpoint_statistics();

}  // namespace ferry
