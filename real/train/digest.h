// Returns a checksum of bytes as 16 hexadecimal digits. It distinguishes texts and detects damage
// on a disk.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "real/disk/checksum.h"

namespace ferry::real::train {

inline std::string digest(std::string_view bytes) {
  Checksum sum;
  sum.add(bytes.data(), static_cast<std::int64_t>(bytes.size()));
  return fmt::format("{:016x}", sum.value());
}

}  // namespace ferry::real::train
