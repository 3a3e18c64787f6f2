// A checksum of bytes as 16 hexadecimal digits (XXH3, real/disk/checksum.h). ferry train uses it to
// find damage in a saved training, and to see whether --data is the same text as before. It does
// not protect against forged data. It differs from formats/digest.h, which is FNV-1a and identifies
// programs.
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
