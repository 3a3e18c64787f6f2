// The kernel times of a model's step, as captures see them (ferry/capture.h).
#pragma once

#include "real/train/options.h"
#include "scenarios/kernel_times.h"

namespace ferry::real::calibrate {

// Runs and captures the step once to warm up and `rounds` times more, each on another batch; a
// sample is an op of one of these. Its `device` is left empty.
TimesTable measure_times(const train::Options& model, std::int64_t rounds);

}  // namespace ferry::real::calibrate
