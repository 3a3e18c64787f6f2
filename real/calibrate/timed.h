// How long a call takes that gives the device work.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>

#include "real/calibrate/measured.h"

namespace ferry::real::calibrate {

// Until all that the device was given is done; on the CPU it is.
void wait_for(c10::Device device);

// Calls it once to warm up, and then in rounds of several calls, of 20 ms together or more; the
// device is waited for at the end of each round.
Timing timed(c10::Device device, std::int64_t rounds, const std::function<void()>& call);

}  // namespace ferry::real::calibrate
