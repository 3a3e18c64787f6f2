// Ferry's pairs on Python's stack of saved-tensor hooks. Python's pairs and Ferry's are on one
// stack, so the innermost one wins.
//
//   Python's stack     [ save_on_cpu's | ours ]   <- a node saves a tensor: only the top sees it
//                                        │
//                                        └ a HookStack: pairs, and what checkpoints find
//
// To Python it is a callable object, like the functions of any pair: called with a tensor it packs,
// called with a packed object it unpacks. Ferry's engine recognises it by its type and calls no
// Python.
#pragma once

#include <torch/csrc/utils/pybind.h>

#include <cstddef>
#include <cstdint>

#include "shared/seam/hooks.h"

namespace ferry::real::python {

// Call it once, before the others.
void prepare_pairs();

// Pushes a pair. The caller holds the interpreter's lock. If hooks are disabled, it throws the
// message of disable_saved_tensors_hooks.
PyObject* push_pair(HookStack<at::Tensor> hooks);  // borrowed: the stack owns it

// Returns the hooks of the pair on top of Python's stack, or null if that pair is not Ferry's. If a
// parent process pushed the pair, returns an empty HookStack. Needs no lock of the interpreter.
const HookStack<at::Tensor>* top_pair();

// Says if the pair was on top, was below others, or had been removed already.
enum class Removed : std::uint8_t { kFromTop, kFromBelow, kWasGone };
Removed remove_pair(PyObject* pair);

// Removes all pairs above this height of Python's stack. Returns true if there were none.
bool cut_hooks(std::size_t height);

}  // namespace ferry::real::python
