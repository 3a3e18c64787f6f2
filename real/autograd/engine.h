// The calls that differ between C++ programs and Python processes, because they have different
// autograd engines.
//
// LibTorch asks its engine for the hooks of each tensor that a node saves, and only the engine
// knows when a backward ends. In a C++ program Ferry installs its own engine (real/engine). In a
// Python process the engine is Python's, which has a stack of hooks of its own, and Ferry wraps it
// (real/python). The functions here, and GraphTask::current of graph_task.h, are defined in the one
// room that is linked: real/engine, unless the target property FERRY_ENGINE names another one.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>

#include "shared/seam/hooks.h"

namespace ferry::real {

// Installs the engine on the first call. Further calls are cheap.
void install_engine();

// Returns the number of pairs on the calling thread's other stack of hooks, Python's. Hooks that
// Ferry pushes apply until that stack becomes deeper than it was at the push.
std::size_t other_hooks_depth();

// Returns the hooks in force if the innermost pair is on the other stack; `around` is Ferry's own
// stack below it.
HookStack<at::Tensor> with_other_hooks(HookStack<at::Tensor> around);

// If the process has groups of backwards of its own (torch.utils.checkpoint's GraphExecGroup), puts
// that of the calling thread into `stack`. In a C++ program entering a group does this.
void put_exec_group(HookStack<at::Tensor>& stack);

}  // namespace ferry::real
