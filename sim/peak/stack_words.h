// Says in words who requested memory, by the stack that a memory snapshot recorded: when in the
// training, where in the program, and which operator.
//
// When: a stack tells only where a request came from. So memory of the optimizer is what a step of
// an optimizer of PyTorch requested (its state, and what it works with), and memory of backward is
// gradients and temporaries alike. Where: the innermost Python frame that is not in a file of
// PyTorch; its files are those in `site-packages/torch`. Operator: with C++ frames, the outermost
// operator that Python called, or the node of backward; without them, the function of PyTorch.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "formats/memory_snapshot.h"

namespace ferry::peak {

enum class When : std::uint8_t {
  kForward,    // in the call of a module
  kBackward,   // in a call of backward
  kRecompute,  // in a checkpoint that runs its function again
  kOptimizer,  // in a step of an optimizer
  kMoved,      // a module moves to the device
  kProgram,    // elsewhere in the program
  kNoFrames,   // there is no stack, or none that Ferry understands
};
std::string_view name(When when);  // "forward"

// Returns the path without the folders of packages ("transformers/models/llama.py") or, of other
// paths, the last two parts.
std::string_view short_path(std::string_view path);

struct StackWords {
  When when = When::kNoFrames;
  std::string file;  // of the place, as in the snapshot; empty: no frame of the program
  std::int64_t line = 0;
  std::string function;
  std::string what;  // "linear", "adam._init_group", "GeluBackward0"; empty: not known

  // Returns "models/llama.py:12 in forward", with a short path; empty if there is no place.
  std::string place() const;
};

StackWords words_of(const MemorySnapshot& snapshot, StackId stack);

}  // namespace ferry::peak
