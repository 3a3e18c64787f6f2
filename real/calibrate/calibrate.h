// Runs the measurements of `ferry calibrate` in order and writes the results.
#pragma once

#include "real/calibrate/options.h"

namespace ferry::real::calibrate {

// Prints the report and writes the requested files. An error leaves no partial file. Throws
// InputError for bad input, and what LibTorch and the machine throw.
void calibrate(const Options& options);

}  // namespace ferry::real::calibrate
