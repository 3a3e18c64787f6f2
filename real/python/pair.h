// A pair of ours on Python's own stack of saved-tensor hooks: between Python's pairs and ours the
// innermost wins, because they are on one stack.
//
//   Python's stack     [ save_on_cpu's | ours ]   <- a node saves a tensor: the top alone sees it
//                                        │
//                                        └ a HookStack: pairs, and what checkpoints find
//
// To Python it is an object that can be called, like the functions of any pair: with a tensor it
// packs, with what that returned it unpacks. Our engine knows it by its type, and calls nothing of
// Python's.
#pragma once

#include <torch/csrc/utils/pybind.h>

#include <cstddef>
#include <cstdint>

#include "shared/seam/hooks.h"

namespace ferry::real::python {

// Once, before the others.
void prepare_pairs();

// The caller holds the interpreter's lock. Throws the message of disable_saved_tensors_hooks where
// hooks are disabled.
PyObject* push_pair(HookStack<at::Tensor> hooks);  // borrowed: the stack has it

// The hooks of the pair on top of Python's stack, where it is ours; needs no lock. Those of a
// parent process are none.
const HookStack<at::Tensor>* top_pair();

// A pair may have been closed from below others, or by them.
enum class Removed : std::uint8_t { kFromTop, kFromBelow, kWasGone };
Removed remove_pair(PyObject* pair);

// Pops what is above this height of Python's stack; true where nothing was.
bool cut_hooks(std::size_t height);

}  // namespace ferry::real::python
