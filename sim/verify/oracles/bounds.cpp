#include "sim/verify/oracles/bounds.h"

#include <algorithm>

namespace ferry::verify {

std::optional<Verdict> judge_bounds(const CoreOptions& options, const OffloadStatistics& counts,
                                    std::int64_t largest) {
  const bool automatic = options.window_bytes == kAutomatic;
  if (options.window_bytes != kUnlimited && !automatic &&
      counts.forward_stash_peak_bytes > std::max(options.window_bytes, largest)) {
    return Verdict{Oracle::kBound, "the forward stash is beyond its window"};
  }
  if (options.window_packs != kUnlimited &&
      counts.forward_stash_peak_bytes > options.window_packs * largest) {
    return Verdict{Oracle::kBound, "the forward stash holds more than its window's packs"};
  }
  // In the published way, the storages of one node and of the one before it are at hand.
  const std::int64_t at_hand = options.reload_pool == ReloadPool::kConsumer ? 2 : 12;
  // A storage that is larger than the hold is held beside it.
  const std::int64_t held_beside = options.hold_bytes > 0 && options.hold_bytes < largest ? 1 : 0;
  if (options.hold_bytes != kUnlimited && options.hold_bytes != kAutomatic &&
      options.prefetch_bytes != kAutomatic &&
      counts.backward_stash_peak_bytes >
          options.prefetch_bytes + options.hold_bytes + (at_hand + held_beside) * largest) {
    return Verdict{Oracle::kBound, "the backward stash is beyond its bound"};
  }
  return std::nullopt;
}

}  // namespace ferry::verify
