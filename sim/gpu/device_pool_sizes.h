// The constants and the rounding of PyTorch's caching allocator (c10/core/AllocatorConfig.h, 2.11),
// which the pool (device_pool*.cpp) and the replay of its traces share.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "formats/alloc_conf.h"

namespace ferry::sim {

inline constexpr std::int64_t kMinBlock = 512;
inline constexpr std::int64_t kSmallSize = std::int64_t{1} << 20;  // largest size in the small pool
inline constexpr std::int64_t kSmallSegment = std::int64_t{2} << 20;
inline constexpr std::int64_t kMinLarge = std::int64_t{10} << 20;  // from here on: own segments
inline constexpr std::int64_t kRoundLarge = std::int64_t{2} << 20;

// Device d's addresses begin at (d + 1) << kDeviceAddressBits.
inline constexpr int kDeviceAddressBits = 44;

inline std::int64_t round_up(std::int64_t bytes, std::int64_t to) {
  return (bytes + to - 1) / to * to;
}

// Returns the bytes that a request takes: a multiple of 512, or a part of a power of two.
std::int64_t rounded_bytes(std::int64_t bytes, const AllocConf& conf);

// Aborts. For errors of the programmer.
inline void require(bool holds, const char* what) {
  if (holds) [[likely]]
    return;
  std::fprintf(stderr, "ferry::sim::DevicePool: %s\n", what);
  std::abort();
}

}  // namespace ferry::sim
