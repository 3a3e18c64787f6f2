// Formats the measurements for people and for machines.
#pragma once

#include <cstddef>
#include <string>

#include "real/calibrate/hardware_file.h"
#include "real/calibrate/measured.h"

namespace ferry::real::calibrate {

// Lines with their line ends.
std::string to_table(const Measured& measured, const About& about);
// Everything as one JSON text. `times`: the number of kernel times that were measured.
std::string to_json(const Measured& measured, const About& about, std::size_t times);

}  // namespace ferry::real::calibrate
