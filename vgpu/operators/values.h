// Errors for a program that reads values which are not computed (`ferry run --no-values`). Most
// kernels compute nothing then (KernelValues, control.h). run.cpp and kernels.cpp call these
// functions.
//
// Three reads are checked: a number of a tensor (Tensor.item), a copy to memory that is not
// page-locked, and an operator whose results, or their shapes, must be computed at once. Under
// --zeros the first two read zeros, and the third still fails. A copy to page-locked memory is not
// checked, so what the host reads there may be anything.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "formats/stream_op.h"

namespace ferry::vgpu {

// Throws c10::NotImplementedError if some of these bytes are not known, also under --zeros. Call it
// for an operator whose results, or their shapes, depend on these bytes.
void require_known(const std::string& name, const std::vector<Range>& reads);

// Throws the same error if the copy goes from a device to memory that is not page-locked, and its
// bytes are not known. Never throws under --zeros.
void require_known_to_copy(const at::Tensor& to, const at::Tensor& from);

// Adds a check to LibTorch's own kernel that reads a number (Tensor.item). Call it once a process.
void watch_numbers();

}  // namespace ferry::vgpu
