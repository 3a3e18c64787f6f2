// What a device computes, and what it costs the host to have it compute: measured with LibTorch's
// own operators, in the modes that `ferry train` sets.
#pragma once

#include <c10/core/Device.h>

#include "real/calibrate/measured.h"
#include "real/calibrate/probe.h"

namespace ferry::real::calibrate {

// Fills in what is not the probe's: operators, rates, device blocks. On the CPU a kernel is done
// when it is issued, so `issue` and `kernel` are both host times there.
void measure_rates(c10::Device device, const Effort& effort, Measured& measured);

}  // namespace ferry::real::calibrate
