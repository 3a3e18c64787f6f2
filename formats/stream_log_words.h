// Words of the stream log that its reader and its writer share, in the order of the enums.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace ferry::stream_log_words {

inline constexpr std::array<std::string_view, 3> kStreamKinds = {"nonblocking", "blocking",
                                                                 "legacy"};
inline constexpr std::array<std::string_view, 3> kMemoryKinds = {"device", "pinned", "pageable"};
enum Memory : std::size_t { kDevice, kPinned, kPageable };
inline constexpr std::array<std::string_view, 4> kPools = {"caching", "async", "host", "malloc"};

}  // namespace ferry::stream_log_words
