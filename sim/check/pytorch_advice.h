// Advice on a race, like advice.h, but for a PyTorch program: with PyTorch's calls, and with places
// in Python files instead of lines of the log.
#pragma once

#include <string>

#include "sim/check/advice.h"

namespace ferry::check {

// Returns an empty text if the later access does not name a place in a Python file, and if no
// single call of PyTorch helps: for earlier accesses by the host, and for hazards that are not
// races.
std::string pytorch_advice(const Hazard& hazard, const AccessNames& names);

}  // namespace ferry::check
