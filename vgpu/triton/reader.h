// Reads a kernel's TTIR from the text that Triton prints (ttir.h).
//
// Most operations have one form, in any order: operands, words, attributes, regions, then types
// after a colon. So the reader knows by name only those with a syntax of their own: functions,
// loops, branches and constants. An operation that nothing runs is read like any other, and
// kernel.h rejects it by its name. Attributes keep their text. Layouts ("#blocked") and everything
// about how a GPU's threads share the work are skipped.
//
// A location becomes the innermost line outside Triton's own library, so an access in `tl.sum` has
// the line of the kernel that called it.
#pragma once

#include <string>
#include <string_view>

#include "vgpu/triton/ttir.h"

namespace ferry::vgpu::triton {

// Throws InputError, with `name` as the file. Of the numbers of values that it returns, each is
// assigned before it is used.
Module read_module(std::string_view text, const std::string& name);

}  // namespace ferry::vgpu::triton
