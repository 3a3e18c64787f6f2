// Writes the measurements of `ferry calibrate` as a hardware file (scenarios/hardware.h) with a
// note on how each was made, so that a step can be planned for this machine. The efficiencies are
// 100 %, because the rates were measured and are not from a data sheet.
//
// The link's rates are those of copies of 16 MiB (or the largest measured size below that), without
// the latency. Each direction has one alone, one while the other direction copies and, if it was
// measured, one of host memory that is not pinned. Other sizes are left out. The latency is the
// shortest time of the smallest copy, in the slower direction. On the CPU the thread that issues
// work also computes, so `launch` is 0, and the host tier takes the place of the host's memory.
#pragma once

#include <string>

#include "real/calibrate/measured.h"
#include "scenarios/hardware.h"

namespace ferry::real::calibrate {

struct About {
  std::string device;     // "cpu" or "cuda"
  std::string host_tier;  // "memory", "disk" or "pinned memory"
  std::string date;
};

// Converts the measurements. The name stays empty.
Hardware to_hardware(const Measured& measured, const About& about);
std::string to_toml(const Measured& measured, const About& about);

}  // namespace ferry::real::calibrate
