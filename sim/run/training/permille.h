// Shares in thousandths. Times are integers below 2^63, but their sums and thousandfolds may not
// be. So those are computed in 128 bits, and a result that is too large becomes the largest
// possible one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace ferry::sim {

__extension__ typedef __int128 WideTime;

enum class Round : std::uint8_t { kDown, kNearest, kUp };

// Both must be at least 0, and `whole` not 0.
inline std::int64_t permille(WideTime part, WideTime whole, Round round) {
  const WideTime half = round == Round::kNearest ? whole / 2 : 0;
  const WideTime more = round == Round::kUp ? whole - 1 : half;
  return static_cast<std::int64_t>(
      std::min<WideTime>((part * 1000 + more) / whole, std::numeric_limits<std::int64_t>::max()));
}

}  // namespace ferry::sim
