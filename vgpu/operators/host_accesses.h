// Reports to the listener what the CPU itself reads and writes of page-locked memory. So the
// checkers find a result that is read before its copy is done, and a buffer that is filled again
// while it is being copied.
//
// An access is seen when a CPU operator of LibTorch is called with a tensor in page-locked memory,
// in any thread, and when a CUDA operator takes such a tensor as a number. Only operators with a
// kernel of their own count; views and operators that read no element do not.
// vgpu/python/ferry_views.py reports accesses that need no operator. All threads count as one.
#pragma once

namespace ferry::vgpu {

// Starts the reports, for the rest of the process. Call it once.
void watch_host_accesses();

}  // namespace ferry::vgpu
