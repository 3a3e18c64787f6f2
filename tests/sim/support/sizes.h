// Sizes in bytes, as tests write them.
#pragma once

#include <cstdint>

namespace ferry::test {

inline constexpr std::int64_t kKiB = 1024;
inline constexpr std::int64_t kMiB = 1024 * kKiB;
inline constexpr std::int64_t kBytes = 64 * kKiB;  // of a tensor, where any size would do

}  // namespace ferry::test
