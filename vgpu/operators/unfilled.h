// Large CPU tensors that nobody fills where few values are computed (`ferry run --no-values`): a
// model that a script makes on the CPU, before it moves it to the device. Their memory is allocated
// and never touched.
//
// What draws or sets more than kFewBytes of floating point does nothing, nor does what changes such
// a tensor in place, or copies one. Integers are filled: they are positions and masks. What any
// other operator makes of an unfilled tensor is computed of whatever is there, and counts as
// unfilled too. To read a number of it is refused, as it is of the device's tensors. Not refused is
// what is read without an operator (numpy, tolist), or written to a file.
#pragma once

#include <ATen/core/Tensor.h>

namespace ferry::vgpu {

// Of its storage. Any thread.
bool is_unfilled(const at::Tensor& tensor);

// From now on, for good; not where all values are computed. Once a process.
void leave_unfilled();

}  // namespace ferry::vgpu
