// The picture of a sweep: one page of HTML with nothing from elsewhere. For each program, time
// against memory: every way that fits is a point, and a line joins those that no other way beats.
#pragma once

#include <string>
#include <vector>

#include "cli/sweep/front.h"

namespace ferry::cli {

// The same fronts give the same bytes.
std::string picture_of(const std::string& sweep, const std::vector<Front>& fronts);

}  // namespace ferry::cli
