// Sizes in bytes, as tests write them.
#pragma once

#include <cstdint>

namespace ferry::test {

inline constexpr std::int64_t kKiB = 1024;
inline constexpr std::int64_t kMiB = 1024 * kKiB;

}  // namespace ferry::test
