// Records a training's first step as a program, for `ferry plan` and `ferry replay`.
#pragma once

#include "real/train/options.h"

namespace ferry::real::train {

// Prints what it wrote. Throws CaptureError, and std::system_error if the file cannot be
// written.
void capture_step(const Options& options);

}  // namespace ferry::real::train
