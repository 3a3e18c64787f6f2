// What a program is refused where few values are computed (`ferry run --no-values`).
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "formats/stream_op.h"

namespace ferry::vgpu {

// Throws c10::NotImplementedError if some of the bytes are not known: the operator's results, or
// their shapes, depend on them.
void require_known(const std::string& name, const std::vector<Range>& reads);

// Throws it where they are not known, not to be read as zeros, and copied from a device to memory
// where the program would read them.
void require_known_to_copy(const at::Tensor& to, const at::Tensor& from);

// Puts a check before LibTorch's own kernel of what reads a number (Tensor.item). Once a process.
void watch_numbers();

}  // namespace ferry::vgpu
