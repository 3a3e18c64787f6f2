// Measures the kernel times of a model's step, through captures (ferry/capture.h).
#pragma once

#include "real/train/options.h"
#include "scenarios/kernel_times.h"

namespace ferry::real::calibrate {

// Runs and captures the step once to warm up and `rounds` times more, each on another batch; each
// op of these is a sample. `device` is left empty.
TimesTable measure_times(const train::Options& model, std::int64_t rounds);

}  // namespace ferry::real::calibrate
