// The errors of checkpoints. They say the same as those of torch.utils.checkpoint.
#pragma once

#include <cstddef>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "shared/seam/error.h"

namespace ferry {

class CheckpointError : public Error {
 public:
  using Error::Error;
};

// A segment saved another number of tensors than its plan lists.
class SegmentMismatch : public Error {
 public:
  SegmentMismatch(std::size_t saved, std::size_t planned)
      : Error("ferry::checkpoint: the segment saved " + std::to_string(saved) +
              " tensors, and the plan in force has " + std::to_string(planned) + " for it") {}
};

// Ends a recompute once every needed tensor exists. It derives from std::exception because autograd
// engines catch nothing else, and a recomputed function may itself run a backward.
class StopRecomputation final : public std::exception {
 public:
  explicit StopRecomputation(const void* run) : run_(run) {}
  const char* what() const noexcept override {
    return "ferry::checkpoint: everything is recomputed; let this exception pass";
  }
  bool is_for(const void* run) const { return run_ == run; }

 private:
  const void* run_;
};

namespace checkpoint_text {

inline constexpr const char* kTip =
    "\nTip: to see a more detailed error message, pass `debug(true)` to `ferry::checkpoint`, or "
    "wrap the code with `ferry::CheckpointDebugGuard guard(true);`.\n";

inline std::string fewer(std::size_t forward, std::size_t recompute) {
  return "ferry::checkpoint: A different number of tensors was saved during the original forward "
         "and recomputation.\nNumber of tensors saved during forward: " +
         std::to_string(forward) +
         "\nNumber of tensors saved during recomputation: " + std::to_string(recompute) + "." +
         kTip;
}

inline std::string more() {
  std::string text =
      "ferry::checkpoint: trying to save more tensors during recomputation than during the "
      "original forward pass.";
  return text += kTip;
}

// A saved tensor whose recompute has other metadata.
struct Difference {
  std::size_t position = 0;
  std::string saved;
  std::string recomputed;
};

inline std::string different(const std::vector<Difference>& differences) {
  std::string text =
      "ferry::checkpoint: Recomputed values for the following tensors have different metadata than "
      "during the forward pass.";
  for (const Difference& difference : differences) {
    text += "\ntensor at position " + std::to_string(difference.position) +
            ":\nsaved metadata: " + difference.saved +
            "\nrecomputed metadata: " + difference.recomputed;
  }
  return text + "." + kTip;
}

inline std::string twice(bool in_group) {
  return std::string(
             "ferry::checkpoint: Unpack is being triggered for a tensor that was already unpacked "
             "once. ") +
         (in_group ? "Performing two backward calls that overlap (i.e. require the same saved "
                     "activation in order to compute gradients) is not allowed while under the "
                     "ferry::GraphExecGroup context. "
                   : "") +
         "If you are unpacking saved tensors in a backward of your own, make sure to do so only "
         "once.";
}

inline constexpr const char* kSwallowed =
    "ferry::checkpoint: the checkpointed function caught the exception that ends its recompute "
    "early. Let exceptions that are not yours pass, or turn early_stop off.";

inline constexpr const char* kLateDevice =
    "ferry::checkpoint: PyTorch's device state was initialized in the forward pass of a "
    "checkpoint, which is not allowed. Use the device before.";

inline constexpr const char* kSharedDraws =
    "ferry::checkpoint: checkpoints on several threads drew random numbers from the CPU's "
    "generator at the same time, so these numbers cannot be repeated. Run the checkpoints one "
    "after another, set preserve_rng_state to false, or make them stages of a ferry::Pipe, which "
    "have their own generators.";

// Returns the long error of debug mode: the first op that differs, and the ops of both runs.
inline std::string debug(const std::string& error, const std::vector<std::string>& forward,
                         const std::vector<std::string>& recompute) {
  std::size_t first = 0;
  while (first < forward.size() && first < recompute.size() && forward[first] == recompute[first]) {
    ++first;
  }
  const auto at = [first](const std::vector<std::string>& ops) {
    return first < ops.size() ? ops[first] : std::string("(no op)");
  };
  std::string text =
      "ERROR: Detected non-determinism while running activation checkpointing\n\n" + error + "\n\n";
  if (first == forward.size() && first == recompute.size()) {
    text += "The " + std::to_string(first) + " ops of forward and of recomputation are the same.\n";
  } else {
    text += "First op that differs (number " + std::to_string(first) +
            "):\n  forward:   " + at(forward) + "\n  recompute: " + at(recompute) + "\n";
  }
  const auto list = [&text](const char* title, const std::vector<std::string>& ops) {
    text += std::string("\n") + title + " (" + std::to_string(ops.size()) + " ops):\n";
    for (const std::string& op : ops) text += "  " + op + "\n";
  };
  list("Operations of the original forward", forward);
  list("Operations of the recomputation", recompute);
  return text +
         "\nYou are seeing this error because you passed `debug(true)` to ferry::checkpoint, "
         "or a ferry::CheckpointDebugGuard is in force.\n";
}

inline std::string outputs(std::size_t forward, std::size_t recompute) {
  return "ferry::checkpoint: the function returned " + std::to_string(forward) +
         " tensors in the original forward, and " + std::to_string(recompute) +
         " in recomputation.";
}

inline constexpr const char* kReentrantInvalid =
    "When reentrant, ferry::checkpoint is incompatible with .grad() or passing an `inputs` "
    "parameter to .backward(). To resolve this error, you can either turn reentrant off, or call "
    ".backward() without passing the `inputs` argument.";
inline constexpr const char* kNothingRequiresGrad =
    "none of output has requires_grad=True, this checkpoint() is not necessary";
inline constexpr const char* kNoInputRequiresGrad =
    "None of the inputs have requires_grad=True. Gradients will be None";

}  // namespace checkpoint_text

}  // namespace ferry
