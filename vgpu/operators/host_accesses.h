// What the CPU itself reads and writes of page-locked memory, for the listener: a result that is
// read before its copy is done, a buffer that is filled again while it is being copied.
//
// It is seen where a CPU operator of LibTorch's is called with a tensor there, in any thread, and
// where a CUDA operator takes such a tensor as a number. What is counted is an operator with a
// kernel of its own; views and what reads no element are not. What reads the bytes without
// an operator is vgpu/python/ferry_views.py's to tell. All threads count as one.
#pragma once

namespace ferry::vgpu {

// From now on, for good. Once a process.
void watch_host_accesses();

}  // namespace ferry::vgpu
