// Which part of a kernel decides what memory it touches.
//
// An access is *exact* if no address, mask, loop bound or condition that leads to it depends on
// loaded data. The operations that exact accesses need are the kernel's slice: a machine that runs
// the slice alone (machine.h) knows the ranges before the kernel runs, and without its values. Of
// the other accesses only the arguments are known through which they may go.
//
// Data depends on loads if it comes from a load, an atomic operation or a called function. What a
// loop carries depends also on the loop's bounds, and the result of a branch on its condition.
#pragma once

#include "vgpu/triton/launch.h"

namespace ferry::vgpu::triton {

// Sets `in_slice` of the operations of the entry function, and the kernel's `may_read` and
// `may_write`.
void find_slice(Kernel& kernel, Function& entry);

}  // namespace ferry::vgpu::triton
