#include "shared/offload/bounds.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/shared/offload/offloader_rig.h"

namespace ferry {
namespace {

using test::kKiB;
using test::kMiB;

CoreOptions automatic() {
  CoreOptions options;
  options.window_bytes = options.prefetch_bytes = options.hold_bytes = kAutomatic;
  return options;
}

TEST(Bounds, WhatIsSetIsWhatHolds) {
  CoreOptions options;
  options.window_bytes = 1;
  options.prefetch_bytes = 2;
  options.hold_bytes = 3;
  Bounds bounds(options);
  bounds.sent(kMiB);
  EXPECT_EQ(bounds.window(), 1);
  EXPECT_EQ(bounds.prefetch(), 2);
  EXPECT_EQ(bounds.hold(), 3);
}

TEST(Bounds, AutomaticOnesFollowWhatIsOnTheHost) {
  const CoreOptions options = automatic();
  Bounds bounds(options);
  EXPECT_EQ(bounds.window(), 0);
  bounds.sent(kMiB);
  EXPECT_EQ(bounds.window(), kMiB / 16);
  for (int i = 1; i < 64; ++i) bounds.sent(kMiB);
  EXPECT_EQ(bounds.window(), 4 * kMiB);
  EXPECT_EQ(bounds.prefetch(), 4 * kMiB);
  EXPECT_EQ(bounds.hold(), 4 * kMiB);
  for (int i = 0; i < 64; ++i) bounds.returned(kMiB);
  EXPECT_EQ(bounds.window(), 4 * kMiB) << "in backward as in forward";
  bounds.begin_run();
  EXPECT_EQ(bounds.window(), 4 * kMiB) << "the next forward begins as the last one ended";
  bounds.begin_run();
  EXPECT_EQ(bounds.window(), 0) << "but two runs later it is forgotten";
  bounds.sent(kMiB << 20);
  EXPECT_EQ(bounds.window(), 512 * kMiB);
}

TEST(Bounds, AutomaticOnesAreAWholeSixteenth) {
  const CoreOptions options = automatic();
  for (const std::int64_t bytes : {std::int64_t{16}, kKiB}) {
    Bounds bounds(options);
    bounds.sent(bytes - 1);
    EXPECT_EQ(bounds.window(), bytes / 16 - 1);
    bounds.sent(1);
    EXPECT_EQ(bounds.window(), bytes / 16);
  }
}

// Twenty layers, saved and brought back: what is stashed on the device, both ways, is a small part
// of what is saved. (With the fixed default of CoreOptions all of it would stay.)
TEST(Bounds, AutomaticOnesKeepASmallModelSmall) {
  const auto peak = [](const CoreOptions& options) {
    test::Rig rig(options);
    for (int step = 0; step < 2; ++step) {
      rig.offloader.begin_run();
      std::vector<test::SaveRef> saves;
      for (int i = 0; i < 20; ++i) saves.push_back(rig.pack_only(rig.world.make(64 * kKiB)));
      rig.backward(saves);
    }
    rig.expect_clean();
    const OffloadStatistics counts = rig.offloader.statistics();
    return counts.forward_stash_peak_bytes + counts.backward_stash_peak_bytes;
  };
  EXPECT_LE(peak(automatic()), 5 * 64 * kKiB);
  EXPECT_EQ(peak(CoreOptions{}), 20 * 64 * kKiB);
}

}  // namespace
}  // namespace ferry
