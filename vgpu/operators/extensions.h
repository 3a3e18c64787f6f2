// Operators that are registered while the program runs, by an extension or by torch.library.
//
// Who computes such an operator, in this order:
//
//  1. A stand-in: a function of the program's that gives the values (torch_ferry.virtual).
//  2. Its own CUDA kernel, which may be made of LibTorch's operators. The first call tries it. If
//     it launches a compiled kernel, the runtime rejects that, and the operator goes on with 3.
//     What the kernel did before its launch is then done twice.
//  3. Its CPU kernel, as for LibTorch's own operators (kernels.h). This also holds for an operator
//     that has no CUDA kernel at all: on a GPU such a call fails, so the end of the run names it.
//  4. Nobody, if values are not computed and a fake (Meta) implementation says the shapes.
//
// Otherwise the call fails with an error that names the operator. Operators with a composite kernel
// run as they are, because that kernel calls other operators.
//
// A fake implementation also says that shapes do not depend on values. Without one, the host waits
// and computes at once. Kernels in Python compute at the call, too, but the host does not wait.
//
// Not covered: functions of an extension that are not operators and launch their kernels
// themselves.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace ferry::vgpu {

// Call it once a process; it stays in force. `forget_error` is called when an operator failed,
// perhaps with a Python error, and is then computed after all.
void watch_extensions(std::function<void()> forget_error);
// Calls that function, if there is one.
void forget_error();

// Takes over operators that were registered since the last call, if there are any. A kernel may be
// registered after its operator, and nothing reports that. So each of LibTorch's operators calls
// this, and Python calls look_for_extensions() when it registers a kernel or looks an operator up.
void meet_extensions();
// The same, without checking first whether there are new operators.
void look_for_extensions();

// From now on the operator's CPU kernel is in Python. Names are as in "ns::op.overload".
void note_python_kernel(const std::string& name);
// From now on the operator `by`, which has the same schema, computes in place of this operator.
// Throws c10::Error if one of them is not registered.
void set_stand_in(const std::string& name, const std::string& by);

// How often which operator was called.
struct ExtensionCalls {
  std::map<std::string, std::int64_t> by_stand_in;
  std::map<std::string, std::int64_t> without_cuda_kernel;  // computed by their CPU kernels
};
ExtensionCalls extension_calls();

}  // namespace ferry::vgpu
