// Formats the measurements, as a table or as JSON.
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
