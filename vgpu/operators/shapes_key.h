// What the shapes of an operator's results follow from, as bytes: equal bytes, equal shapes.
#pragma once

#include <ATen/core/ivalue.h>

#include <optional>
#include <string>
#include <vector>

#include "vgpu/operators/operator.h"

namespace ferry::vgpu {

// None: an argument is of a kind that is not known here.
std::optional<std::string> shapes_key(const Operator& op,
                                      const std::vector<c10::IValue>& arguments);

}  // namespace ferry::vgpu
