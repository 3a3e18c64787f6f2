// Bounds that adapt, while drawn bytes come to the host and go, over several runs.
#include "shared/offload/bounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/choices/draws.h"
#include "tests/support/objection.h"

namespace ferry::test {
namespace {

// A bound that adapts is a sixteenth of what was on the host at once in this run or the one before,
// and at most 512 MiB.
Objection judge_bounds(std::uint64_t seed) {
  choices::Draws draws(seed);
  CoreOptions options;
  options.window_bytes = options.hold_bytes = kAutomatic;
  options.prefetch_bytes = 7;
  Bounds bounds(options);
  std::vector<std::int64_t> peaks = {0, 0};  // by run
  std::int64_t now = 0;
  for (int step = 0; step < 8; ++step) {
    const int what = draws.in(0, 4);
    if (what == 0) {
      bounds.begin_run();
      peaks.push_back(now);
    } else if (what == 1 && now > 0) {
      const std::int64_t bytes = std::min<std::int64_t>(now, 997 * draws.in(1, 1000));
      bounds.returned(bytes);
      now -= bytes;
    } else {
      const std::int64_t bytes = std::int64_t{997} * draws.in(1, draws.one_in(4) ? 1 << 24 : 1000);
      bounds.sent(bytes);
      now += bytes;
      peaks.back() = std::max(peaks.back(), now);
    }
    const std::int64_t peak = std::max(peaks.back(), peaks[peaks.size() - 2]);
    const std::int64_t must = std::min(peak / 16, std::int64_t{512} * 1024 * 1024);
    if (bounds.window() == must && bounds.hold() == must && bounds.prefetch() == 7) continue;
    return "a bound that adapts is " + std::to_string(bounds.window()) + ", not " +
           std::to_string(must);
  }
  return std::nullopt;
}

TEST(BoundsDrawn, AutomaticOnesAreASixteenthOfWhatWasOnTheHostInThisRunOrTheLast) {
  EXPECT_EQ(first_objection(judge_bounds), "");
}

}  // namespace
}  // namespace ferry::test
