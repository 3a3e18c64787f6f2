// What depends on the process: whose its autograd engine is.
//
// LibTorch asks its engine for the hooks of each tensor that a node saves, and the engine alone
// knows when a backward ends. In a C++ program both are ours to take (real/engine). In a Python
// process the engine is Python's, which also keeps a stack of hooks, and ours stands before it
// (real/python). Declared here, with GraphTask::current of graph_task.h, and defined by whichever
// of the two rooms is linked: real/engine, unless a target's property FERRY_ENGINE names another.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>

#include "shared/seam/hooks.h"

namespace ferry::real {

// Once, by whoever comes first. Cheap to call again.
void install_engine();

// How many pairs of hooks are on the calling thread's other stack, Python's: what is pushed on ours
// applies until that one grows beyond what it found there.
std::size_t other_hooks_depth();

// What the innermost of those makes of the hooks in force; `around` is what our own stack has
// below it.
HookStack<at::Tensor> with_other_hooks(HookStack<at::Tensor> around);

// Where the process has groups of backwards of its own (torch.utils.checkpoint's GraphExecGroup),
// the one that the calling thread is in becomes that of `stack`. A C++ program's are put there when
// they are entered.
void put_exec_group(HookStack<at::Tensor>& stack);

}  // namespace ferry::real
