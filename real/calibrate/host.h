// Reads the machine's description of itself in /proc and elsewhere, for the report and the hardware
// file of `ferry calibrate`. Missing facts are "unknown" or 0.
#pragma once

#include <string>

#include "real/calibrate/measured.h"

namespace ferry::real::calibrate {

// Describes the CPU as the device; its memory is the host's.
Machine host_machine();
// Returns the text after the colon on the first line that begins with `key`.
std::string field_of(const std::string& file, const std::string& key);
std::int64_t threads();

// Returns the date of the system's clock in UTC: "2026-11-22".
std::string today();

}  // namespace ferry::real::calibrate
