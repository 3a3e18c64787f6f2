// Reads the types of TTIR: "tensor<16x32x!tt.ptr<f16>>", "i32", "(i1, f32)".
#pragma once

#include <vector>

#include "vgpu/triton/cursor.h"
#include "vgpu/triton/ttir.h"

namespace ferry::vgpu::triton {

// A type that no operation of ours has (a descriptor, a token) is kOther.
Type read_type(Cursor& cursor);
// One type, or several in brackets.
std::vector<Type> read_types(Cursor& cursor);

}  // namespace ferry::vgpu::triton
