// Large CPU tensors that are not filled if few values are computed (`ferry run --no-values`): a
// model that a script makes on the CPU, for example, before it moves it to the device. Their memory
// is allocated and never touched.
//
// Operators that fill a floating-point tensor of more than kFewBytes (uniform_, zero_) do nothing.
// So do common operators that change an unfilled tensor in place (mul_), and copies from one.
// unfilled.cpp lists these operators. Integers are filled, because they are positions and masks.
// Any other operator on an unfilled tensor computes from whatever is in memory, and its results
// count as unfilled too. Reading a number from an unfilled tensor is an error, as it is for tensors
// on the device; with --zeros it is what is in memory. Reading without an operator (numpy, tolist)
// and writing to a file are not detected.
#pragma once

#include <ATen/core/Tensor.h>

namespace ferry::vgpu {

// Returns whether the tensor's storage is unfilled. Any thread may call it.
bool is_unfilled(const at::Tensor& tensor);

// From now on large CPU tensors stay unfilled. Call it once, and not if all values are computed.
void leave_unfilled();
// While it is on, the calling thread fills large tensors as well.
void fill_all(bool all);

}  // namespace ferry::vgpu
