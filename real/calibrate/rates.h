// Measures the computing rates of a device, and the host's cost to issue work, for `ferry
// calibrate`. It uses LibTorch's own operators. calibrate() has set the modes of `ferry train`
// before (real/train/deterministic.h).
#pragma once

#include <c10/core/Device.h>

#include "real/calibrate/measured.h"
#include "real/calibrate/probe.h"

namespace ferry::real::calibrate {

// Measures operators, rates and device blocks; the probe measures the rest. On the CPU a kernel is
// done when it is issued, so `issue` and `kernel` are both times of the host.
void measure_rates(c10::Device device, const Effort& effort, Measured& measured);

}  // namespace ferry::real::calibrate
