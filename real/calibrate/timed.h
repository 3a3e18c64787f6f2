// Measures the time of a call that gives work to the device. rates.cpp times its operators with it.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>

#include "real/calibrate/measured.h"

namespace ferry::real::calibrate {

// Waits until the device has done all its work. On the CPU it returns at once.
void wait_for(c10::Device device);

// Calls it once to warm up, then in rounds of several calls that last 20 ms or more. It waits for
// the device at the end of each round.
Timing timed(c10::Device device, std::int64_t rounds, const std::function<void()>& call);

}  // namespace ferry::real::calibrate
