// What the machine says of itself, in /proc and elsewhere. What it does not say is "unknown", or 0.
#pragma once

#include <string>

#include "real/calibrate/measured.h"

namespace ferry::real::calibrate {

// The CPU as the device: its memory is the host's.
Machine host_machine();
// Of the first line that begins with `key`, what follows the colon.
std::string field_of(const std::string& file, const std::string& key);
std::int64_t threads();

// "2026-11-22", of the system's clock, in UTC.
std::string today();

}  // namespace ferry::real::calibrate
