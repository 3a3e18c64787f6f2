// Operators that are registered while the program runs: an extension's, or those of torch.library.
//
// Some of their CUDA kernels are made of LibTorch's operators, and run as they are. The others
// launch compiled kernels, which the runtime refuses: in their place the operator's CPU kernel
// computes, as for LibTorch's own (kernels.h), if there is one. Only a call tells, so the first one
// tries: until the launch that is refused the operator's own kernel has prepared its results, and
// what else it did is done twice. Then the host waits, since nobody knows the shapes of the
// results. Without a CPU kernel the operator fails by its name and the compiled kernel's.
//
// Not met: an extension's functions that are no operators, and call their kernels themselves.
#pragma once

#include <functional>

namespace ferry::vgpu {

// Once a process, for good. `forget_error`: an operator that failed, by an error of Python's too,
// is computed after all.
void watch_extensions(std::function<void()> forget_error);

// Meets those that were registered since, if any were. Their kernels may come after them, and
// nobody tells: so each of LibTorch's operators asks, and Python does where kernels are registered
// and operators are looked up.
void meet_extensions();
// The same, whether or not any were.
void look_for_extensions();

}  // namespace ferry::vgpu
