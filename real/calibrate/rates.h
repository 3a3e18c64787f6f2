// Measures a device's computing rates, and the host's cost to issue work, with LibTorch's own
// operators in the modes that `ferry train` sets.
#pragma once

#include <c10/core/Device.h>

#include "real/calibrate/measured.h"
#include "real/calibrate/probe.h"

namespace ferry::real::calibrate {

// Measures what the probe does not: operators, rates, device blocks. On the CPU a kernel is done
// when it is issued, so `issue` and `kernel` are both host times there.
void measure_rates(c10::Device device, const Effort& effort, Measured& measured);

}  // namespace ferry::real::calibrate
