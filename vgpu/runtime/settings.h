// What the devices are: how many, what they are called, how large they are, and where their memory
// lies.
//
// It is a plain value. Tests and `ferry run` set it through control.h, the parts of the runtime
// read it. The runtime owns the one that counts, under its lock (runtime.h). All devices are alike:
// nothing here is of one device alone.
#pragma once

#include <cstdint>
#include <string>

namespace ferry::vgpu {

inline constexpr int kDevices = 8;  // at most

struct Settings {
  int devices = 2;
  std::string device_name = "virtual GPU";
  int compute_capability = 80;  // times ten
  int multiprocessors = 4;
  std::int64_t device_bytes_max = std::int64_t{256} << 20;
  std::int64_t context_bytes = 0;  // of them
  std::int64_t pinned_bytes_max = std::int64_t{256} << 20;
  bool keeps_addresses = false;
  bool segments_go_up = false;
};

}  // namespace ferry::vgpu
