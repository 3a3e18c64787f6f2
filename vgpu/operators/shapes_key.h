// A key for the cache of shapes (shapes.cpp). It has all that the shapes of an operator's results
// depend on, as bytes: if two calls have equal keys, their results have equal shapes.
#pragma once

#include <ATen/core/ivalue.h>

#include <optional>
#include <string>
#include <vector>

#include "vgpu/operators/operator.h"

namespace ferry::vgpu {

// Returns nullopt if an argument is of a kind that is not known here.
std::optional<std::string> shapes_key(const Operator& op,
                                      const std::vector<c10::IValue>& arguments);

}  // namespace ferry::vgpu
