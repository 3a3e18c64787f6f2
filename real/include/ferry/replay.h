// Operator replay for LibTorch: the tensors that a function saves for backward are dropped, and
// backward makes them again by running the operator calls that made them. The function itself is
// not called again.
//
//   auto y = ferry::replay(block, x);
//   auto y = ferry::replay(ferry::ReplayOptions().keep({"aten::mm", "aten::addmm"}), block, x);
//
// The function is called once, now, with these arguments. Below autograd each operator call is
// recorded with its arguments, the autocast state, and the state of the random generator if it uses
// one. When backward first needs a tensor that these calls made, it runs the necessary calls again,
// for all such tensors, once per backward and on the stream of forward. Gradients have the same
// bits as without. Higher derivatives and several backwards through one graph work too.
//
// Compared with ferry::checkpoint, no function is kept or called again. So it may capture and print
// anything, side effects happen once, only the needed calls run again, and random numbers need no
// care. The price is the recording of each call.
//
// `keep` names expensive operators whose results are kept. The names are those dispatched below
// autograd ("aten::addmm" for at::linear). Kept results count as tensors from outside.
//
// Tensors from outside that the calls need (inputs, parameters, kept results) are held from the end
// of the function on: by the hooks around it, such as an OffloadGuard's or a checkpoint's, or else
// where they are. So replay, checkpoint and offload nest in any order.
//
// A batch norm in training mode runs again on copies of its running statistics, so these are
// updated once.
//
// Some calls cannot run again, and their results are kept as without replay: operators of other
// libraries than ATen, because it is unknown if they use random numbers or write; ATen's operators
// that do more than their schema says (such as set_, resize_, rrelu_with_noise, and the RNNs of
// cuDNN and MIOpen), and those with `out` arguments; batch norms in eval mode; calls with tensors
// that are more than a view of their storage; calls on other threads, on other streams, or in
// backwards inside the function; and calls that write a tensor from outside, with everything that
// is computed from it. A tensor that the function itself made may be written in place, inside the
// function and after it.
//
// Errors: ferry::ModifiedInPlace if a saved tensor was written after its save, as without replay,
// or if a call must read a tensor from outside that was written in place after the call.
// ReplayError if an operator makes another number of bytes than in forward. What an operator throws
// leaves backward with its type, and the next backward tries again.
//
// Like autograd, replay does not see writes through raw pointers or `.data`. The state of random
// generators is replayed; default dtypes, thread counts and flags of at::globalContext() are not.
//
// Without grad mode the function is just called.
#pragma once

#include <torch/arg.h>
#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ferry/checkpointable.h"
#include "shared/replay/replay_state.h"

namespace ferry {

struct ReplayOptions {
  ReplayOptions() = default;

  // Operators whose results are kept. A name that can never occur below autograd throws ValueError
  // when the options are used.
  TORCH_ARG(std::vector<std::string>, keep);
};

namespace replay_impl {

// While it lives, operator calls of this thread are recorded.
class Span {
 public:
  explicit Span(const ReplayOptions& options);
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;
  ~Span();
  // Ends the recording. If the function threw and this is not called, all recorded tensors stay.
  void end();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace replay_impl

// Calls the function and returns what it returns. The function can be anything callable, or a
// module: a module holder, a pointer, or an object with a forward.
template <class Function, class... Arguments>
auto replay(const ReplayOptions& options, Function&& function, Arguments&&... arguments) {
  using Result = std::remove_cvref_t<decltype(checkpoint_impl::call_with(function, arguments...))>;
  replay_impl::Span span(options);
  if constexpr (std::is_void_v<Result>) {
    checkpoint_impl::call_with(function, arguments...);
    span.end();
  } else {
    Result result = checkpoint_impl::call_with(function, arguments...);
    span.end();
    return result;
  }
}

template <class Function, class... Arguments>
requires(!std::is_same_v<std::remove_cvref_t<Function>, ReplayOptions>)  //
    auto replay(Function&& function, Arguments&&... arguments) {
  return replay(ReplayOptions(), std::forward<Function>(function),
                std::forward<Arguments>(arguments)...);
}

// Counts of all replays in this process.
ReplayStatistics replay_statistics();

}  // namespace ferry
