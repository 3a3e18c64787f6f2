// Measures the kernel times of a model's step, for ferry calibrate. It captures the step several
// times (ferry/capture.h) and collects the time of each op.
//
// There is no optimizer step, so the weights stay the same. The first capture is only for warming
// up.
#pragma once

#include "real/train/options.h"
#include "scenarios/kernel_times.h"

namespace ferry::real::calibrate {

// Captures the step once to warm up, and `rounds` more times, each with another batch. Each op of
// these is a sample. `device` stays empty.
TimesTable measure_times(const train::Options& model, std::int64_t rounds);

}  // namespace ferry::real::calibrate
