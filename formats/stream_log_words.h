// Words of the stream log (formats/STREAM_LOG.md) that its reader and its writer share, in the
// order of the enums (StreamKind, Memory, PoolKind).
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
