// Shares in thousandths, for the results of runs and plans (idle time, overlap, slowdown). Times
// are integers below 2^63, but a sum of times, or a thousand times one, may be larger. So both are
// computed in 128 bits, and a result that is too large becomes the largest possible one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace ferry::sim {

__extension__ typedef __int128 WideTime;

enum class Round : std::uint8_t { kDown, kNearest, kUp };

// Returns part / whole in thousandths. Both must be at least 0, and `whole` not 0.
inline std::int64_t permille(WideTime part, WideTime whole, Round round) {
  const WideTime half = round == Round::kNearest ? whole / 2 : 0;
  const WideTime more = round == Round::kUp ? whole - 1 : half;
  return static_cast<std::int64_t>(
      std::min<WideTime>((part * 1000 + more) / whole, std::numeric_limits<std::int64_t>::max()));
}

}  // namespace ferry::sim
