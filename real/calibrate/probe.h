// Measurements for ferry calibrate that use Ferry's own devices: copies, and blocks of host memory.
// A probe makes the same calls as the offloader (probe_of.h), so the figures are those that
// offloading gets.
//
// The library for a type of device registers a probe when it is linked (real/calibrate_cuda), as
// that library's offloader does (real/api/device_offloaders.h). So this room does not depend on
// CUDA. The probe of the CPU is built in.
#pragma once

#include <c10/core/Device.h>

#include <filesystem>
#include <memory>
#include <vector>

#include "real/calibrate/measured.h"

namespace ferry::real::calibrate {

// How much to measure. Sizes ascend.
struct Effort {
  std::vector<std::int64_t> copy_bytes;
  std::int64_t rounds = 5;
  bool small = false;  // for tests: sizes are too small for good figures
};
Effort effort_of(bool small, std::int64_t rounds);

class Probe {
 public:
  virtual ~Probe() = default;
  virtual Machine machine() const = 0;
  virtual std::vector<CopyTime> copies(const Effort& effort) = 0;
  virtual std::vector<AllocationTime> host_blocks(const Effort& effort) = 0;
};

// `disk` is the directory of the host tier's file; empty: the host tier is memory.
using MakeProbe = std::unique_ptr<Probe> (*)(const std::filesystem::path& disk);
void register_probe(c10::DeviceType type, MakeProbe make);
// Throws c10::Error if there is no probe for this type.
std::unique_ptr<Probe> make_probe(c10::DeviceType type, const std::filesystem::path& disk);

}  // namespace ferry::real::calibrate
