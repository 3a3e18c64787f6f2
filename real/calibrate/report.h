// Formats the measurements of `ferry calibrate` for stdout, as a table or (--json) as JSON. The
// hardware file is made in hardware_file.h.
#pragma once

#include <cstddef>
#include <string>

#include "real/calibrate/hardware_file.h"
#include "real/calibrate/measured.h"

namespace ferry::real::calibrate {

// Returns lines with their line ends.
std::string to_table(const Measured& measured, const About& about);
// Returns all measurements as one JSON text. `times` is the number of kernel times that were
// measured.
std::string to_json(const Measured& measured, const About& about, std::size_t times);

}  // namespace ferry::real::calibrate
