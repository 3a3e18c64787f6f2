#include "sim/run/training/test_hardware.h"

#include <cstdint>

namespace ferry::sim {

Hardware test_hardware() {
  Hardware hardware;
  hardware.name = "test";
  hardware.memory_bytes = std::int64_t{1} << 40;
  hardware.host_memory_bytes = std::int64_t{1} << 40;
  hardware.flops_per_us.fill(1'000'000);
  hardware.memory_bytes_per_us = 50'000;
  hardware.kernel_min_ns = 1'000;
  hardware.launch_ns = 500;
  hardware.link = {20'000, 20'000, 10'000, 18'000, 500};
  return hardware;
}

}  // namespace ferry::sim
