// Records the first step of a training as a program, for `ferry plan` and `ferry replay`.
#pragma once

#include "real/train/options.h"

namespace ferry::real::train {

// Captures the step, writes the program, and prints a line about it. Throws CaptureError, and
// std::system_error if the file cannot be written.
void capture_step(const Options& options);

}  // namespace ferry::real::train
