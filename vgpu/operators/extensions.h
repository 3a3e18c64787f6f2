// Operators that are registered while the program runs, by an extension or by torch.library.
//
// The CUDA kernels of some are made of LibTorch's operators, and run as they are. The others launch
// compiled kernels, which the runtime rejects. In that case the operator's CPU kernel computes, if
// there is one, as for LibTorch's own operators (kernels.h). Only a call shows which case it is, so
// the first call tries the operator's own kernel. Whatever that kernel did before its launch was
// rejected is then done twice. After that the host waits, because the shapes of the results are not
// known beforehand. An operator without a CPU kernel fails with an error that names it and the
// compiled kernel.
//
// Not covered: functions of an extension that are not operators and launch their kernels
// themselves.
#pragma once

#include <functional>

namespace ferry::vgpu {

// Call it once a process; it stays in force. `forget_error` is called when an operator failed,
// perhaps with a Python error, and is then computed after all.
void watch_extensions(std::function<void()> forget_error);

// Takes over operators that were registered since the last call, if there are any. A kernel may be
// registered after its operator, and nothing reports that. So each of LibTorch's operators calls
// this, and Python calls look_for_extensions() when it registers a kernel or looks an operator up.
void meet_extensions();
// The same, without checking first whether there are new operators.
void look_for_extensions();

}  // namespace ferry::vgpu
