// Activation checkpointing for LibTorch in C++. It behaves like torch.utils.checkpoint.
//
//   auto y = ferry::checkpoint(block, x);                     // block(x), recomputed in backward
//   auto y = ferry::checkpoint([&](const auto& x, const auto& w, int n) { ... }, x, w, 3);
//   auto y = ferry::checkpoint(ferry::CheckpointOptions().early_stop(false), block, x);
//
// The tensors that the function saves for backward are dropped. When backward needs them it calls
// the function again, once per backward. Values and gradients have the same bits as without a
// checkpoint. Derivatives of any order, several backwards through one graph, backwards inside the
// function, and nested checkpoints all work.
//
// Functions and arguments. The function can be anything callable, or a module: a module holder, a
// pointer, an AnyModule, or an object with a forward. The function and its arguments are copied or
// moved into the graph, as std::thread does; pass std::ref for a reference. ferry::Checkpointable
// says whether that is possible. A copied module has the same parameters, and the training mode
// that it has now. The function is called now, and again for each recompute. A recompute may run on
// one of autograd's threads, and several may run at once if several threads run backward through
// one graph.
//
// Each tensor argument is saved like the input of a node: the hooks in force (such as an
// OffloadGuard) pack it, and writing it in place before it is needed is an error. The function gets
// it as an lvalue of its own, and the other arguments as const lvalues, the same in every call.
// Tensors inside other arguments (containers, structs, optionals) and tensors that the function
// captures are plain references: hooks do not see them, and an outer checkpoint does not recompute
// them. If such a tensor is read in forward and written in place before a recompute, an error names
// it, unless the function itself writes it. checkpoint() returns whatever the function returns.
//
// The function must do the same in each call: the same ops with the same shapes. Random numbers and
// autocast are replayed (CheckpointOptions); other state that it depends on must not change. Each
// recompute repeats side effects, such as the running statistics of a BatchNorm, unless the
// function asks is_recomputing(). A recompute ends early by an exception. The function must let
// exceptions that are not its own pass, or replace them by others as TorchScript's interpreter
// does. Inside a checkpoint a script runs as it is written, without TorchScript's optimisations.
//
// The CPU's random generator belongs to the process. If checkpoints on several threads use it at
// the same time, one of them throws CheckpointError at the end of its forward. (The stages of a
// ferry::Pipe have their own generators.) If another thread uses it outside checkpoints, Ferry does
// not notice, and the numbers of checkpoints that run meanwhile are not replayed.
//
// Without grad mode the function is just called.
//
// Errors: CheckpointError if a recompute saves other tensors than forward did, or if a recomputed
// tensor is unpacked twice in one backward, as by a custom function that unpacks its saved
// variables twice. ValueError if options contradict each other. Error if an accelerator is used for
// the first time inside a checkpoint. What the function throws leaves backward with its type, and
// the next backward tries again.
//
// The model is torch/utils/checkpoint.py of PyTorch 2.11: both variants, GraphExecGroup and
// checkpoint_sequential. Two things differ: the switches for early_stop and debug are per process
// there and per thread here, and the forward scope of a context_fn cannot swallow exceptions here.
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

  // A recompute ends as soon as it has made everything that forward saved, by an exception through
  // the function. The last op that saves is then entered: if it saves its inputs it does not run;
  // if it saves its output it has run (also RReLU, which fills what it saves). Turn this off if the
  // last to save is a torch::autograd::Function that saves its own output: LibTorch leaks that
  // output when saving throws.
  TORCH_ARG(bool, early_stop) = true;
  // Recomputes get the random numbers of forward, from the CPU's default generator and from the
  // devices of the tensor arguments. Afterwards the generators continue as if no recompute had run.
  TORCH_ARG(bool, preserve_rng_state) = true;
  // Check that the tensors that a recompute saves have the shape, dtype and device that they had in
  // forward, and that tensors from outside have the version that they had.
  TORCH_ARG(DeterminismCheck, determinism_check) = DeterminismCheck::kDefault;
  // Log every op of forward and of recomputes, so that an error can name the first op that differs.
  TORCH_ARG(bool, debug) = false;
  // The reentrant variant (use_reentrant=True). Forward makes no graph inside the function.
  // Backward calls the whole function again and runs a backward of its own through it. This needs a
  // plain backward(), without `inputs` and not grad(); an argument and an output that require grad;
  // and a function that returns a tensor, or a vector, an array or a tuple of tensors. Of the other
  // options, preserve_rng_state applies, and determinism_check for tensors from outside. debug,
  // context_fn and choices throw ValueError.
  TORCH_ARG(bool, reentrant) = false;
  // Called once for each call of checkpoint, before the function. It returns functions that make
  // guards of your own for forward and for each recompute.
  TORCH_ARG(std::function<CheckpointContexts()>, context_fn);
  // The choice for each tensor that the function saves, in the order of saving: recompute it, keep
  // it, or give it to the hooks around the checkpoint, such as an OffloadGuard. Past the end:
  // recompute.
  TORCH_ARG(std::vector<SavedChoice>, choices);
};

namespace checkpoint_impl {

using Run = std::function<void(Tensors)>;
using Map = std::function<Tensors(Tensors)>;

// Runs `forward` now, and `again` in each recompute.
void run(const CheckpointOptions& options, Tensors inputs, Run again, Run forward);
// Called inside a catch block for an error of Ferry in a recompute. It throws.
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

// Runs a chain of functions as `segments` parts of equal length. The last part takes the remainder.
// Each part except the last is a checkpoint with these options; the last is not, because its
// backward comes first. Each function takes and returns one tensor. Throws ValueError unless 1 <=
// segments <= length.
torch::Tensor checkpoint_sequential(const torch::nn::Sequential& functions, std::int64_t segments,
                                    torch::Tensor input, const CheckpointOptions& options = {});
torch::Tensor checkpoint_sequential(
    std::vector<std::function<torch::Tensor(torch::Tensor)>> functions, std::int64_t segments,
    torch::Tensor input, const CheckpointOptions& options = {});

// is_checkpointing() is true inside a checkpointed function in its forward. is_recomputing() is
// true inside a recompute, also in the functions that it calls. Inside a checkpoint that a
// recompute calls both are true, as in torchgpipe.
bool is_checkpointing();
bool is_recomputing();

namespace checkpoint_impl {

// Changes the context of this thread's checkpoints while it lives.
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

// While it lives, overrides early_stop of all checkpoints that run forward on this thread. The
// innermost guard wins. Their recomputes obey it too, even if the guard is gone by then.
class CheckpointEarlyStopGuard : public checkpoint_impl::Scope {
 public:
  explicit CheckpointEarlyStopGuard(bool early_stop);
};

// Overrides debug in the same way.
class CheckpointDebugGuard : public checkpoint_impl::Scope {
 public:
  explicit CheckpointDebugGuard(bool debug);
};

// A group of backwards that share one recompute. They must use disjoint parts of one graph, such as
// the parts of a zero-bubble pipeline's backward:
//
//   ferry::GraphExecGroup group;
//   {
//     const ferry::GraphExecGroup::Guard guard(group);
//     torch::autograd::grad({loss}, {x}, {}, /*retain_graph=*/true);
//     torch::autograd::grad({loss}, {w});
//   }
//
// Unused recomputed tensors live until the last copy of the group, and its guards, are gone. It is
// an error (CheckpointError) if two of the backwards need the same tensor. A group may be entered
// again after its guard has ended; a guard inside a guard throws Error. Copies are the same group.
class GraphExecGroup {
 public:
  GraphExecGroup();

  // Applies to this thread, and to backwards that begin on it.
  class Guard : public checkpoint_impl::Scope {
   public:
    explicit Guard(const GraphExecGroup& group);
  };

 private:
  std::shared_ptr<ExecGroup> group_;
};

// Counts of all checkpoints in this process.
CheckpointStatistics checkpoint_statistics();

}  // namespace ferry
