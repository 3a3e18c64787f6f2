#include "sim/peak/snapshot_peak.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "formats/error.h"
#include "formats/limits.h"

namespace ferry::peak {
namespace {

constexpr std::uint64_t kA = 0x10000000, kB = 0x20000000;
constexpr std::int64_t kMiB = 1 << 20;

MemoryEvent event(MemoryAction action, std::uint64_t address, std::int64_t bytes,
                  std::int64_t time_us = 0) {
  MemoryEvent event;
  event.action = action;
  event.address = address;
  event.bytes = bytes;
  event.time_us = time_us;
  return event;
}
MemoryEvent alloc(std::uint64_t address, std::int64_t bytes, std::int64_t time_us = 0) {
  return event(MemoryAction::kAlloc, address, bytes, time_us);
}
void add_free(std::vector<MemoryEvent>& trace, std::uint64_t address, std::int64_t bytes) {
  trace.push_back(event(MemoryAction::kFreeRequested, address, bytes));
  trace.push_back(event(MemoryAction::kFreeCompleted, address, bytes));
}

// A segment of 4 MiB with one block of 1 MiB at its begin.
MemorySnapshot one_block() {
  MemorySnapshot snapshot;
  MemorySegment segment;
  segment.address = kA;
  segment.bytes = 4 * kMiB;
  segment.blocks = {{kA, kMiB, kMiB, BlockState::kAllocated},
                    {kA + kMiB, 3 * kMiB, 0, BlockState::kInactive}};
  snapshot.segments = {segment};
  snapshot.traces.resize(1);
  return snapshot;
}

Moment only(const MemorySnapshot& snapshot) {
  const std::vector<Moment> moments = moments_of(snapshot);
  EXPECT_EQ(moments.size(), 1u);
  return moments.at(0);
}

TEST(SnapshotPeak, WithoutAHistoryItIsTheSnapshotsMoment) {
  MemorySnapshot snapshot = one_block();
  snapshot.traces.clear();
  const Moment moment = only(snapshot);
  EXPECT_FALSE(moment.entry);
  EXPECT_EQ(moment.allocated_bytes, kMiB);
  EXPECT_EQ(moment.reserved_bytes, 4 * kMiB);
  EXPECT_EQ(moment.unused.holes_bytes, 3 * kMiB);
  EXPECT_EQ(moment.unused.holes, 1u);
  EXPECT_TRUE(moments_of({}).empty());
}

// The block of the snapshot is older than the history, and the block of the peak is gone.
TEST(SnapshotPeak, WhatTheHistoryFreedIsThereAtThePeak) {
  MemorySnapshot snapshot = one_block();
  auto& trace = snapshot.traces[0];
  trace.push_back(event(MemoryAction::kSegmentAlloc, kB, 8 * kMiB));
  trace.push_back(alloc(kB, 5 * kMiB));
  add_free(trace, kB, 5 * kMiB);
  trace.push_back(event(MemoryAction::kSegmentFree, kB, 8 * kMiB));
  const Moment moment = only(snapshot);
  EXPECT_EQ(moment.entry, 1u);
  EXPECT_EQ(moment.allocated_bytes, 6 * kMiB);
  EXPECT_EQ(moment.reserved_bytes, 12 * kMiB);
  ASSERT_EQ(moment.blocks.size(), 2u);
  EXPECT_FALSE(moment.blocks[0].entry);
  EXPECT_EQ(moment.blocks[1].entry, 1u);
  EXPECT_EQ(moment.unused.holes_bytes, 6 * kMiB);
  EXPECT_EQ(moment.mismatches, 0u);
}

// A block that was allocated before the history and freed in it.
TEST(SnapshotPeak, TheMemoryAtTheBeginningOfTheHistoryIsFound) {
  MemorySnapshot snapshot = one_block();
  auto& trace = snapshot.traces[0];
  add_free(trace, kA + 2 * kMiB, kMiB);
  const Moment moment = only(snapshot);
  EXPECT_FALSE(moment.entry);
  EXPECT_EQ(moment.entries, 2u);
  EXPECT_EQ(moment.allocated_bytes, 2 * kMiB);
  EXPECT_EQ(moment.blocks.size(), 2u);
  EXPECT_EQ(moment.unused.holes, 2u);
  EXPECT_EQ(moment.unused.largest_hole_bytes, kMiB);
}

TEST(SnapshotPeak, AFreedBlockThatWaitsForAStreamIsNotAllocatedButPending) {
  MemorySnapshot snapshot = one_block();
  auto& trace = snapshot.traces[0];
  trace.push_back(alloc(kA + kMiB, kMiB));
  trace.push_back(event(MemoryAction::kFreeRequested, kA + kMiB, kMiB));
  trace.push_back(alloc(kA + 2 * kMiB, 2 * kMiB));
  trace.push_back(event(MemoryAction::kFreeCompleted, kA + kMiB, kMiB));
  add_free(trace, kA + 2 * kMiB, 2 * kMiB);
  const Moment moment = only(snapshot);
  EXPECT_EQ(moment.entry, 2u);
  EXPECT_EQ(moment.allocated_bytes, 3 * kMiB);
  EXPECT_EQ(moment.unused.pending_bytes, kMiB);
  EXPECT_EQ(moment.unused.holes_bytes, 0);
}

TEST(SnapshotPeak, AFailedAllocationCountsAsThePeak) {
  MemorySnapshot snapshot = one_block();
  auto& trace = snapshot.traces[0];
  trace.push_back(alloc(kA + kMiB, 2 * kMiB));
  add_free(trace, kA + kMiB, 2 * kMiB);
  trace.push_back(event(MemoryAction::kOom, /*free on the device*/ 512, 16 * kMiB));
  const Moment moment = only(snapshot);
  EXPECT_EQ(moment.entry, 3u);
  EXPECT_EQ(moment.allocated_bytes, kMiB);
  EXPECT_EQ(moment.peak_bytes(), 17 * kMiB);
  ASSERT_TRUE(moment.failure);
  EXPECT_EQ(moment.failure->device_free_bytes, 512);
  // A request that fails below an earlier peak is not the peak.
  trace.back().bytes = kMiB;
  EXPECT_FALSE(only(snapshot).failure);
}

TEST(SnapshotPeak, WholeFreeSegmentsAreCachedAndRoundingIsAHole) {
  MemorySnapshot snapshot = one_block();
  snapshot.segments[0].blocks[0].requested_bytes = kMiB - 100;
  MemorySegment free = snapshot.segments[0];
  free.address = kB;
  free.blocks = {{kB, 4 * kMiB, 0, BlockState::kInactive}};
  snapshot.segments.push_back(free);
  const Moment moment = only(snapshot);
  EXPECT_EQ(moment.unused.cached_bytes, 4 * kMiB);
  EXPECT_EQ(moment.unused.cached_segments, 1u);
  EXPECT_EQ(moment.unused.holes_bytes, 3 * kMiB + 100);
  EXPECT_EQ(moment.unused.holes, 1u);
}

// Parts that are mapped side by side are one segment, and one part of it can be unmapped.
TEST(SnapshotPeak, PartsOfExpandableSegmentsAreMappedAndUnmapped) {
  MemorySnapshot snapshot = one_block();
  snapshot.segments[0].expandable = true;
  auto& trace = snapshot.traces[0];
  trace.push_back(event(MemoryAction::kSegmentMap, kA + 4 * kMiB, 4 * kMiB));
  trace.push_back(alloc(kA + 2 * kMiB, 5 * kMiB));
  add_free(trace, kA + 2 * kMiB, 5 * kMiB);
  trace.push_back(event(MemoryAction::kSegmentUnmap, kA + 4 * kMiB, 4 * kMiB));
  const Moment moment = only(snapshot);
  EXPECT_EQ(moment.reserved_bytes, 8 * kMiB);
  EXPECT_EQ(moment.unused.holes, 2u);
  EXPECT_EQ(moment.unused.cached_bytes, 0);
  EXPECT_EQ(moment.mismatches, 0u);
}

TEST(SnapshotPeak, EachDeviceHasItsOwnMoment) {
  MemorySnapshot snapshot = one_block();
  snapshot.segments.push_back(snapshot.segments[0]);
  snapshot.segments[1].device = 2;
  snapshot.traces.resize(3);
  snapshot.traces[2].push_back(alloc(kA, kMiB));
  const std::vector<Moment> moments = moments_of(snapshot);
  ASSERT_EQ(moments.size(), 2u);
  EXPECT_EQ(moments[1].device, 2u);
  EXPECT_EQ(moments[1].blocks.at(0).entry, 0u);
}

TEST(SnapshotPeak, EntriesThatDoNotFitTheBlocksAreCounted) {
  MemorySnapshot snapshot = one_block();
  snapshot.traces[0].push_back(alloc(kB, kMiB));
  EXPECT_GE(only(snapshot).mismatches, 1u);
}

TEST(SnapshotPeak, BlocksThatAreOlderThanTheStepAreCounted) {
  MemorySnapshot snapshot = one_block();
  auto& trace = snapshot.traces[0];
  trace.push_back(alloc(kA + kMiB, kMiB, 10));
  trace.push_back(alloc(kA + 2 * kMiB, 2 * kMiB, 30));
  add_free(trace, kA + kMiB, kMiB);
  add_free(trace, kA + 2 * kMiB, 2 * kMiB);
  EXPECT_FALSE(steps_of(snapshot, only(snapshot)));
  snapshot.marks = {{"Optimizer.step#SGD.step", true, 15},
                    {"Optimizer.step#SGD.step", false, 20},
                    {"Optimizer.zero_grad#SGD.zero_grad", false, 25},
                    {"Optimizer.step#SGD.step", false, 40}};
  const auto steps = steps_of(snapshot, only(snapshot));
  ASSERT_TRUE(steps);
  EXPECT_EQ(steps->before, 1u);
  EXPECT_EQ(steps->all, 2u);
  EXPECT_EQ(steps->old_blocks, 2u);
  EXPECT_EQ(steps->old_bytes, 2 * kMiB);
}

TEST(SnapshotPeak, MoreBytesThanAnyMemoryHasAreRejected) {
  MemorySnapshot snapshot;
  snapshot.traces.resize(1);
  for (std::uint64_t i = 0; i < 5000; ++i) {
    snapshot.traces[0].push_back(alloc(kA + i, limits::kBytes));
  }
  EXPECT_THROW(moments_of(snapshot), LimitReached);
}

// A snapshot of an H100 from outside (shreyansh26/MLSys-Experiments): FERRY_SNAPSHOTS names its
// folder. Its history begins with the first allocation.
TEST(SnapshotPeak, AnH100sPeakIsThatOfItsTrace) {
  const char* const folder = std::getenv("FERRY_SNAPSHOTS");
  const auto file = std::filesystem::path(
                        folder != nullptr ? folder : FERRY_SOURCE_DIR "/../shared/data/snapshots") /
                    "h100_no_grad.pkl";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "no data: " << file.filename().string();
  const MemorySnapshot snapshot = read_memory_snapshot(file);
  const Moment moment = only(snapshot);
  std::int64_t now = 0, most = 0;
  for (const MemoryEvent& each : snapshot.traces.at(0)) {
    if (each.action == MemoryAction::kAlloc) now += each.bytes;
    if (each.action == MemoryAction::kFreeRequested) now -= each.bytes;
    most = std::max(most, now);
  }
  EXPECT_EQ(moment.allocated_bytes, most);
  EXPECT_EQ(moment.mismatches, 0u);
  EXPECT_EQ(moment.blocks.size(), 7u);
}

}  // namespace
}  // namespace ferry::peak
