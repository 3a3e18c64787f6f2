// The picture of a sweep: one HTML page that needs no network. For each program it shows time
// against memory: every way that fits is a point, and a line joins those that no other way beats.
#pragma once

#include <string>
#include <vector>

#include "cli/sweep/front.h"

namespace ferry::cli {

// Equal fronts give equal bytes.
std::string picture_of(const std::string& sweep, const std::vector<Front>& fronts);

}  // namespace ferry::cli
