// Writes measurements as a hardware file (scenarios/hardware.h), with a note on how each was made.
// The efficiencies are 100 %, because the rates are measured and not from a data sheet.
//
// The file has one rate for each direction: that of the copies of 16 MiB (or the largest measured
// below that), less the latency, which is the least time of the smallest copy, of the slower
// direction. Pinned memory. On the CPU the thread that issues is the one that computes: `launch` is
// 0 there, and the host tier takes the place of the host's memory.
#pragma once

#include <string>

#include "real/calibrate/measured.h"
#include "scenarios/hardware.h"

namespace ferry::real::calibrate {

struct About {
  std::string device;     // "cpu", "cuda"
  std::string host_tier;  // "memory", "disk", "pinned memory"
  std::string date;
};

// Converts the figures; the name stays empty.
Hardware to_hardware(const Measured& measured, const About& about);
std::string to_toml(const Measured& measured, const About& about);

}  // namespace ferry::real::calibrate
