// The settings of the devices: their number, name and size, and where their memory lies.
//
// This is a plain value. Tests and `ferry run` set it through control.h; the parts of the runtime
// read it. The runtime owns the one in force, under its lock (runtime.h). All devices are alike, so
// no setting is for a single device.
#pragma once

#include <cstdint>
#include <string>

namespace ferry::vgpu {

inline constexpr int kDevices = 8;  // the largest number of devices

struct Settings {
  int devices = 2;
  std::string device_name = "virtual GPU";
  int compute_capability = 80;  // times ten
  int multiprocessors = 4;
  std::int64_t device_bytes_max = std::int64_t{256} << 20;
  std::int64_t context_bytes = 0;  // part of device_bytes_max
  std::int64_t pinned_bytes_max = std::int64_t{256} << 20;
  bool keeps_addresses = false;
  bool segments_go_up = false;
};

}  // namespace ferry::vgpu
