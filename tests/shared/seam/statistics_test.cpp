#include "shared/seam/statistics.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace ferry {
namespace {

OffloadStatistics some() {
  OffloadStatistics counts;
  counts.packs = 10;
  counts.kept = 3;
  counts.full = 2;
  counts.shared = 1;
  counts.offloaded_count = 6;
  counts.offloaded_bytes = 5 << 20;
  counts.reloaded_count = 5;
  counts.reloaded_bytes = 4 << 20;
  counts.prefetched_count = 4;
  counts.stash_hits = 2;
  counts.target_hits = 1;
  counts.vain_count = 1;
  counts.vain_bytes = 1 << 19;
  counts.compute_waits = 7;
  counts.stalled_ns = 1'250'000;
  counts.forward_stash_peak_bytes = 100;
  counts.quarantined = 1;
  return counts;
}

TEST(OffloadStatistics, ReadAsALine) {
  EXPECT_EQ(to_string(some()),
            "10 tensors saved: 6 copied to the host (5.0 MiB), 1 shared a copy, 3 kept (2 for "
            "want of room on the host); 5 copied back (4.0 MiB, 4 of them ahead of their use), 2 "
            "found still on the device; 1 copies that nobody read (0.5 MiB); 7 waits for copies, "
            "1.2 ms stalled");
  OffloadStatistics none = some();
  none.stalled_ns = 0;
  none.full = 0;
  EXPECT_EQ(to_string(none).find("stalled"), std::string::npos);
  EXPECT_EQ(to_string(none).find("room"), std::string::npos);
}

// Every count, so that one that is added to the struct and forgotten here shows.
TEST(OffloadStatistics, OfAStepAreTheDifference) {
  OffloadStatistics twice = some();
  twice += some();
  EXPECT_EQ(to_string(twice.since(some())), to_string(some()));
  const OffloadStatistics step = twice.since(some());
  EXPECT_EQ(step.target_hits, 1);
  EXPECT_EQ(step.quarantined, 1);
  EXPECT_EQ(step.stalled_ns, 1'250'000);
  EXPECT_EQ(step.forward_stash_peak_bytes, 200) << "a peak is no count";
}

using Count = std::int64_t OffloadStatistics::*;
constexpr std::array<Count, 16> kCounts = {&OffloadStatistics::packs,
                                           &OffloadStatistics::kept,
                                           &OffloadStatistics::full,
                                           &OffloadStatistics::shared,
                                           &OffloadStatistics::offloaded_count,
                                           &OffloadStatistics::offloaded_bytes,
                                           &OffloadStatistics::reloaded_count,
                                           &OffloadStatistics::reloaded_bytes,
                                           &OffloadStatistics::prefetched_count,
                                           &OffloadStatistics::stash_hits,
                                           &OffloadStatistics::target_hits,
                                           &OffloadStatistics::vain_count,
                                           &OffloadStatistics::vain_bytes,
                                           &OffloadStatistics::compute_waits,
                                           &OffloadStatistics::stalled_ns,
                                           &OffloadStatistics::quarantined};
constexpr std::array<Count, 4> kStashes = {
    &OffloadStatistics::forward_stash_bytes, &OffloadStatistics::forward_stash_peak_bytes,
    &OffloadStatistics::backward_stash_bytes, &OffloadStatistics::backward_stash_peak_bytes};

TEST(OffloadStatistics, StartAtNothing) {
  const OffloadStatistics none;
  for (const Count count : kCounts) EXPECT_EQ(none.*count, 0);
  for (const Count bytes : kStashes) EXPECT_EQ(none.*bytes, 0);
}

TEST(OffloadStatistics, OfSeveralOffloadersHaveTheSumOfTheirStashes) {
  OffloadStatistics sum;
  sum.forward_stash_bytes = 1;
  sum.forward_stash_peak_bytes = 2;
  sum.backward_stash_bytes = 3;
  sum.backward_stash_peak_bytes = 4;
  OffloadStatistics other;
  other.forward_stash_bytes = 10;
  other.forward_stash_peak_bytes = 20;
  other.backward_stash_bytes = 30;
  other.backward_stash_peak_bytes = 40;
  sum += other;
  EXPECT_EQ(sum.forward_stash_bytes, 11);
  EXPECT_EQ(sum.forward_stash_peak_bytes, 22);
  EXPECT_EQ(sum.backward_stash_bytes, 33);
  EXPECT_EQ(sum.backward_stash_peak_bytes, 44);
}

// No two counts of it are alike, so that one that is added to another one shows.
TEST(OffloadStatistics, EachCountOfTwoAddsUp) {
  static_assert(sizeof(OffloadStatistics) ==
                (kCounts.size() + kStashes.size()) * sizeof(std::int64_t));
  OffloadStatistics now, before;
  std::int64_t next = 1;
  for (const Count count : kCounts) {
    now.*count = 1000 + next++;
    before.*count = next++;
  }
  OffloadStatistics sum = now;
  sum += before;
  const OffloadStatistics since = now.since(before);
  for (const Count count : kCounts) {
    EXPECT_EQ(sum.*count, now.*count + before.*count);
    EXPECT_EQ(since.*count, now.*count - before.*count);
  }
}

TEST(OffloadStatistics, OneForWantOfRoomAndTheShortestStallAreSaid) {
  OffloadStatistics counts;
  counts.full = 1;
  EXPECT_NE(to_string(counts).find("0 kept (1 for want of room on the host);"), std::string::npos);
  counts.stalled_ns = 1;
  EXPECT_NE(to_string(counts).find("0 waits for copies, 0.0 ms stalled"), std::string::npos);
}

TEST(Mebibytes, AreRoundedToTheNearestTenth) {
  EXPECT_EQ(in_mebibytes(0), "0.0 MiB");
  EXPECT_EQ(in_mebibytes(52'428), "0.0 MiB");
  EXPECT_EQ(in_mebibytes(52'429), "0.1 MiB");
  EXPECT_EQ(in_mebibytes(12'897'485), "12.3 MiB");
}

}  // namespace
}  // namespace ferry
