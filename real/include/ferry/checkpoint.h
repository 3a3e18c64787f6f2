// Activation checkpointing for LibTorch, in C++: the semantics of torch.utils.checkpoint.
//
//   auto y = ferry::checkpoint(block, x);                     // block(x), recomputed in backward
//   auto y = ferry::checkpoint([&](const auto& x, const auto& w, int n) { ... }, x, w, 3);
//   auto y = ferry::checkpoint(ferry::CheckpointOptions().early_stop(false), block, x);
//
// The tensors that the function saves for backward are dropped, and computed again, once for each
// backward, when backward needs them. Values and gradients are the same bits as without, and so are
// derivatives of any order, several backwards through one graph, backwards inside the function, and
// checkpoints inside checkpoints.
//
// Functions and arguments. The function (anything that can be called, or a module: a holder, a
// pointer, an AnyModule or an object with a forward) and its arguments are copied or moved into the
// graph, as into std::thread: pass std::ref for a reference (ferry::Checkpointable says whether
// they can be). A module's copy has the same parameters, and the training mode of now.
// The function is called here, and again for each recompute, maybe on one of autograd's threads,
// maybe on several at once where several threads go backward through one graph. Each tensor
// argument is saved as a node saves its inputs: by the hooks in force (an OffloadGuard's, say), and
// with its version, so that a tensor which is written in place before it is needed is an error. It
// is handed over as an lvalue of the call's own. The other arguments are handed over as const
// lvalues, the same at every call. Tensors within them (containers, structs, optionals) or captured
// by the function are plain references: no hooks see them, and an outer checkpoint does not
// recompute them. One that the function's operators read in forward, and that is written in place
// before a recompute, is an error that names it, unless the function writes it itself. Whatever the
// function returns is returned.
//
// The function must do the same again: same ops, same shapes. Random numbers and autocast are
// replayed (CheckpointOptions); what else it depends on must not change. Side effects (a
// BatchNorm's running statistics) happen once more in every recompute unless the function asks
// is_recomputing(). Exceptions that are not the function's own must pass through it, or leave it as
// other exceptions (as from TorchScript's interpreter): a recompute ends early by such an
// exception. A script runs as it is written, not as its optimiser would have it.
//
// The CPU's generator is the process's: where checkpoints of several threads draw from it at once,
// one of them throws CheckpointError when its forward ends. (The stages of a ferry::Pipe have
// generators of their own.) Another thread that draws outside of checkpoints is not seen: what a
// checkpoint drew meanwhile is not replayed.
//
// Without grad mode the function just runs.
//
// Errors: CheckpointError where a recompute saves other tensors than forward did, or a recomputed
// tensor is asked for twice in one backward (a custom function that unpacks its saved variables
// twice); ValueError for options that contradict each other; Error where an
// accelerator was first used within a checkpoint. What the function throws leaves backward with its
// type; the next backward tries again.
//
// Models torch/utils/checkpoint.py of PyTorch 2.11 (both variants, GraphExecGroup,
// checkpoint_sequential). Not modelled: its early_stop and debug switches are process globals,
// ours are the thread's; a context_fn's forward scope cannot swallow exceptions.
#pragma once

#include <torch/arg.h>
#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "ferry/checkpointable.h"
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
  // saves its output, or RReLU, which fills what it saves, has run. (Turn it off where a
  // torch::autograd::Function that saves its own output is the last to save: LibTorch leaks that
  // output when saving throws.)
  TORCH_ARG(bool, early_stop) = true;
  // Random numbers of a recompute are those of forward: of the CPU's default generator and those of
  // the devices where tensor arguments are. Afterwards the generators go on as if nothing had run.
  TORCH_ARG(bool, preserve_rng_state) = true;
  // Compare shape, dtype and device of the tensors that a recompute saves with forward's, and the
  // version of those that it reads from outside.
  TORCH_ARG(DeterminismCheck, determinism_check) = DeterminismCheck::kDefault;
  // Log every op in forward and in recomputes, so that an error names the first that differs.
  TORCH_ARG(bool, debug) = false;
  // The reentrant variant (use_reentrant=True): forward makes no graph within the function, and
  // backward runs the whole of it again, with a backward of its own over that. It takes backward()
  // without `inputs`, and no grad(); at least one argument and one output that require grad;
  // functions that return a tensor, a vector, an array or a tuple of tensors. Of the other options
  // preserve_rng_state applies, and determinism_check to what is read from outside; debug,
  // context_fn and choices are refused.
  TORCH_ARG(bool, reentrant) = false;
  // Called once for each call of checkpoint, before the function: makes guards of the user's for
  // forward and for each recompute.
  TORCH_ARG(std::function<CheckpointContexts()>, context_fn);
  // The fate of the tensors that the function saves, in the order of saving: recomputed, kept, or
  // given to the hooks around the checkpoint (an OffloadGuard's). Past the end: recomputed.
  TORCH_ARG(std::vector<SavedChoice>, choices);
};

namespace checkpoint_impl {

using Run = std::function<void(Tensors)>;
using Map = std::function<Tensors(Tensors)>;

// `forward` runs now, `again` in each recompute.
void run(const CheckpointOptions& options, Tensors inputs, Run again, Run forward);
// `rethrow`: called within a catch block for an error of ours in a recompute; it throws.
using Rethrow = void (*)();
Tensors run_reentrant(const CheckpointOptions& options, const Tensors& inputs, Map function,
                      Rethrow rethrow = nullptr);
[[noreturn]] void refuse_output();

template <class Result, class Function>
Result reentrant(const CheckpointOptions& options, const Tensors& inputs,
                 const std::shared_ptr<Function>& call) {
  if constexpr (kTensors<Result>) {
    return from_tensors<Result>(run_reentrant(
        options, inputs, [call](Tensors again) { return to_tensors((*call)(std::move(again))); }));
  } else {
    refuse_output();
  }
}

template <class Function, class... Arguments>
auto checkpoint(const CheckpointOptions& options, Function&& function, Arguments&&... arguments) {
  using Bound = Call<std::decay_t<Function>, std::decay_t<Arguments>...>;
  using Result = typename Bound::Result;
  Tensors inputs;
  const auto call = std::make_shared<Bound>(inputs, std::forward<Function>(function),
                                            std::forward<Arguments>(arguments)...);
  if (options.reentrant()) return reentrant<Result>(options, inputs, call);
  const auto again = [call](Tensors tensors) { (*call)(std::move(tensors)); };
  if constexpr (std::is_void_v<Result>) {
    run(options, std::move(inputs), again, again);
  } else {
    std::optional<Result> result;
    run(options, std::move(inputs), again,
        [&](Tensors tensors) { result.emplace((*call)(std::move(tensors))); });
    return std::move(*result);
  }
}

}  // namespace checkpoint_impl

template <class Function, class... Arguments>
auto checkpoint(const CheckpointOptions& options, Function&& function, Arguments&&... arguments) {
  constexpr bool kept = checkpoint_impl::kKept<Function, Arguments...>;
  static_assert(kept,
                "ferry::checkpoint: expected a function and arguments that can be copied or moved "
                "into the graph; pass std::ref(x), or std::move(x)");
  static_assert(!kept || Checkpointable<Function, Arguments...>,
                "ferry::checkpoint: expected a function that takes these arguments, or a module "
                "whose forward does: tensors as Tensor&, the others as const lvalues");
  if constexpr (Checkpointable<Function, Arguments...>) {
    return checkpoint_impl::checkpoint(options, std::forward<Function>(function),
                                       std::forward<Arguments>(arguments)...);
  }
}

template <class Function, class... Arguments>
requires(!std::is_same_v<std::remove_cvref_t<Function>, CheckpointOptions>) auto checkpoint(
    Function&& function, Arguments&&... arguments) {
  return checkpoint(CheckpointOptions(), std::forward<Function>(function),
                    std::forward<Arguments>(arguments)...);
}

// Runs a chain in `segments` parts of equal length, each a checkpoint but the last, which takes the
// remainder: its backward comes at once. One tensor in, one out. Throws ValueError
// unless 1 <= segments <= length. The options are each segment's.
torch::Tensor checkpoint_sequential(const torch::nn::Sequential& functions, std::int64_t segments,
                                    torch::Tensor input, const CheckpointOptions& options = {});
torch::Tensor checkpoint_sequential(
    std::vector<std::function<torch::Tensor(torch::Tensor)>> functions, std::int64_t segments,
    torch::Tensor input, const CheckpointOptions& options = {});

// True within a checkpointed function that runs for the first time; true in one that runs again for
// backward, or in what it calls. Both are true in a checkpoint within one that runs again, as in
// torchgpipe.
bool is_checkpointing();
bool is_recomputing();

namespace checkpoint_impl {

// Changes the context of this thread's checkpoints, for a scope.
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
// innermost guard wins. It holds for their recomputes, too, whenever backward comes.
class CheckpointEarlyStopGuard : public checkpoint_impl::Scope {
 public:
  explicit CheckpointEarlyStopGuard(bool early_stop);
};

// Does the same for debug.
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
// Recomputed tensors that nobody used live until the last copy of the group, and its guards, are
// gone. A tensor that two of the backwards need is an error (CheckpointError). One group may be
// entered again; guards within a guard throw Error. A copy is the same group.
class GraphExecGroup {
 public:
  GraphExecGroup();

  // Applies to this thread, and to backwards begun on it.
  class Guard : public checkpoint_impl::Scope {
   public:
    explicit Guard(const GraphExecGroup& group);
  };

 private:
  std::shared_ptr<ExecGroup> group_;
};

// The counts of all checkpoints in this process.
CheckpointStatistics checkpoint_statistics();

}  // namespace ferry
