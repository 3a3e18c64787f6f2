// Operator replay for LibTorch: what a function saves for backward is dropped, and made again there
// by running the operator calls that made it, not the function.
//
//   auto y = ferry::replay(block, x);
//   auto y = ferry::replay(ferry::ReplayOptions().keep({"aten::mm", "aten::addmm"}), block, x);
//
// The function is called once, now, with these arguments as they are. Below autograd each operator
// call is recorded with its arguments, autocast, and the random generator's state if it draws. When
// backward first needs a tensor that these calls made, those calls that it and the others need run
// again, once for each backward, on the stream that forward used. Gradients are the same bits as
// without, and so are further derivatives and several backwards through one graph.
//
// Against ferry::checkpoint: there is no function to keep or to run again, so it may capture and
// print what it likes, and end where it likes; side effects happen once; only calls that lead to
// something needed run again; and the bits that forward drew need no care. It costs the recording
// of each call.
//
// `keep` names operators, as dispatched below autograd ("aten::addmm" for at::linear), whose
// results are kept: the expensive ones. What they make counts as the tensors from outside do.
//
// Tensors from outside that saved ones are made of (inputs, parameters, kept results) are held from
// the function's end on: by the hooks around (an OffloadGuard's, a checkpoint's), or where they
// are. So these compose in any order, and spans in spans.
//
// A batch norm in training runs again on copies of its running statistics: it writes them once.
//
// What cannot run again is kept as it is without: what operators of other libraries than ATen make
// (nobody knows whether they draw or write), batch norms in evaluation, tensors that are no plain
// windows on their storage, calls of other threads, of other streams and of backwards inside
// the function, and calls that write a tensor
// from outside, together with all that is computed from it. A tensor that the function itself made
// may be written in place, in it and after it.
//
// Errors: ferry::ModifiedInPlace at the unpacking of a tensor that was written since it was saved,
// as without; and where a tensor from outside that a call has to read again was written in place
// since that call. ReplayError where an operator makes another number of bytes than in forward.
// What an operator throws leaves backward with its type; the next backward tries again.
//
// Not seen, as by autograd: writes through raw pointers or `.data`. Not replayed: generators are,
// but not default dtypes, thread counts, flags of at::globalContext().
//
// Without grad mode the function just runs.
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

  // Operators whose results are kept. Throws ValueError, when it is used, for a name that never
  // arrives.
  TORCH_ARG(std::vector<std::string>, keep);
};

namespace replay_impl {

// While it lives, calls of this thread are recorded.
class Span {
 public:
  explicit Span(const ReplayOptions& options);
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;
  ~Span();
  // Where it is not called, because the function threw, all that was recorded stays.
  void end();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace replay_impl

// The function (anything that can be called, or a module: a holder, a pointer or an object with a
// forward) may return what it likes.
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

// Counts of the process.
ReplayStatistics replay_statistics();

}  // namespace ferry
