// The advice on a race (advice.h) once more, in the words of a PyTorch program: its calls, and the
// places in its files in place of a log's lines.
#pragma once

#include <string>

#include "sim/check/advice.h"

namespace ferry::check {

// Empty where the later access does not name a place in a Python file, and where PyTorch has no
// one call for it: between host threads, and of the lifetimes of buffers by themselves.
std::string pytorch_advice(const Hazard& hazard, const AccessNames& names);

}  // namespace ferry::check
