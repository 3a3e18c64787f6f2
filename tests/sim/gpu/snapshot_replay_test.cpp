#include "sim/gpu/snapshot_replay.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "formats/error.h"
#include "sim/gpu/snapshot_start.h"
#include "tests/sim/gpu/pool_clock.h"
#include "tests/sim/gpu/recorded_memory.h"
#include "tests/sim/support/sizes.h"

namespace ferry::sim {
namespace {

using test::kMiB;

constexpr StreamId kMain{0};
constexpr StreamId kSide{1};

struct SnapshotReplayTest : ::testing::Test {
  std::string told() const {
    const SnapshotReplay replay = replay_snapshot(recorded.snapshot(), "file");
    if (!replay.difference) return "the same";
    return replay.difference->real + " | " + replay.difference->simulated;
  }
  std::string told(const MemorySnapshot& snapshot) const {
    const SnapshotReplay replay = replay_snapshot(snapshot, "file");
    if (!replay.difference) return "the same";
    return replay.difference->real + " | " + replay.difference->simulated;
  }

  PoolClock clock;
  DevicePool pool{0, 100 * kMiB, clock};
  RecordedMemory recorded{pool};
};

TEST_F(SnapshotReplayTest, AStepIsTheSame) {
  Block* weights = pool.allocate(3 * kMiB, kMain);
  Block* shared = pool.allocate(30 * kMiB, kMain);
  pool.record_use(shared, kSide);
  pool.free(shared);
  pool.free(pool.allocate(1000, kSide));
  clock.finish(kSide);
  pool.allocate(29 * kMiB, kMain);
  pool.free(weights);
  const SnapshotReplay replay = replay_snapshot(recorded.snapshot(), "file");
  EXPECT_FALSE(replay.difference);
  EXPECT_EQ(replay.allocations, 4);
  EXPECT_EQ(replay.segments, 3);
  EXPECT_EQ(replay.entries, static_cast<std::int64_t>(recorded.events.size()));
}

TEST_F(SnapshotReplayTest, RetriesAndOutOfMemoryAreReplayed) {
  Block* large = pool.allocate(60 * kMiB, kMain);
  pool.record_use(large, kSide);
  pool.free(large);
  pool.allocate(70 * kMiB, kMain);  // waits for the other, and gives it back
  EXPECT_THROW(pool.allocate(40 * kMiB, kMain), OutOfMemory);
  pool.allocate(20 * kMiB, kMain);
  EXPECT_EQ(told(), "the same");
}

TEST_F(SnapshotReplayTest, AnEmptiedCacheIsReplayed) {
  Block* kept = pool.allocate(2 * kMiB, kMain);
  pool.free(pool.allocate(30 * kMiB, kMain));
  pool.empty_cache();
  pool.allocate(2 * kMiB, kMain);  // of what is left of the first segment
  pool.free(kept);
  EXPECT_EQ(told(), "the same");
}

TEST_F(SnapshotReplayTest, ATraceMayBeginInTheMiddle) {
  Block* first = pool.allocate(3 * kMiB / 2, kMain);
  Block* second = pool.allocate(11 * kMiB - 512 * 1024, kMain);  // half a MiB stays with it
  Block* third = pool.allocate(600, kMain);
  recorded.events.clear();
  pool.free(second);
  pool.allocate(11 * kMiB, kMain);
  pool.free(third);
  pool.allocate(5 * kMiB, kMain);
  pool.free(first);
  EXPECT_EQ(told(), "the same");
  const SnapshotStart start = start_of(recorded.snapshot(), 0, 0, "file");
  ASSERT_EQ(start.segments.size(), 2u);
}

// "Out of memory, catch it, halve the batch": the request that found too few addresses left new
// ones behind, which lie before the others and are used next.
TEST_F(SnapshotReplayTest, WhatARefusedRequestReservedIsUsedNext) {
  std::uint64_t next = std::uint64_t{1} << 46;
  DevicePool expandable(0,
                        {.total_bytes = 1000 * kMiB,
                         .conf = parse_alloc_conf("expandable_segments:True", "conf"),
                         .place = [&] { return next -= std::uint64_t{1} << 32; }},
                        clock);
  RecordedMemory history(expandable);
  expandable.allocate(600 * kMiB, kMain);
  EXPECT_THROW(expandable.allocate(600 * kMiB, kMain), OutOfMemory);
  Block* half = expandable.allocate(300 * kMiB, kMain);
  EXPECT_LT(half->address(), (std::uint64_t{1} << 46) - (std::uint64_t{1} << 32));
  expandable.free(half);
  expandable.allocate(250 * kMiB, kMain);
  EXPECT_EQ(told(history.snapshot()), "the same");
}

// A block of 4.94 MiB was given out whole for 4 MiB. What lies behind it is free by the time that
// it is freed, but was in use before: this tells how large it was.
TEST_F(SnapshotReplayTest, WhatWasBehindABlockTellsItsSize) {
  Block* other = pool.allocate(20 * kMiB, kMain);
  pool.free(pool.allocate(64 * kMiB, kMain));
  Block* first = pool.allocate(40960000, kMain);
  Block* whole = pool.allocate(79 * kMiB / 16, kMain);
  Block* last = pool.allocate(20 * kMiB, kMain);
  pool.free(whole);
  whole = pool.allocate(4 * kMiB, kMain);
  ASSERT_EQ(whole->bytes(), 79 * kMiB / 16);
  pool.free(last);
  pool.free(other);
  recorded.events.clear();
  pool.free(pool.allocate(8 * kMiB, kMain));
  pool.free(first);
  pool.free(whole);
  EXPECT_EQ(told(), "the same");
}

TEST_F(SnapshotReplayTest, TheFirstDifferenceIsTold) {
  DevicePool other(0, {.conf = parse_alloc_conf("roundup_power2_divisions:2", "conf")}, clock);
  RecordedMemory history(other);
  other.allocate(5000, kMain);  // takes 6144 bytes, and with the usual options 5120
  other.allocate(1500, kMain);
  MemorySnapshot snapshot = history.snapshot();
  snapshot.conf = {};
  const SnapshotReplay replay = replay_snapshot(snapshot, "file");
  ASSERT_TRUE(replay.difference);
  EXPECT_EQ(replay.difference->entry, 2u);
  EXPECT_EQ(replay.difference->real, "alloc of 1500 bytes at 0x1ffffe001800 on stream 0");
  EXPECT_EQ(replay.difference->simulated, "alloc of 1500 bytes at 0x1ffffe001400 on stream 0");
}

TEST_F(SnapshotReplayTest, TheSegmentsAtTheEndAreComparedToo) {
  pool.allocate(1000, kMain);
  MemorySnapshot snapshot = recorded.snapshot();
  snapshot.segments[0].blocks[0].requested_bytes = 999;
  EXPECT_EQ(told(snapshot),
            "a segment of 2097152 bytes at 0x1ffffe000000 with 1024 active_allocated 2096128 "
            "inactive | a segment of 2097152 bytes at 0x1ffffe000000 with 1024 active_allocated "
            "2096128 inactive");
}

TEST_F(SnapshotReplayTest, WhatMakesNoSenseIsRefused) {
  const auto refusal = [&](MemorySnapshot snapshot) -> std::string {
    try {
      replay_snapshot(snapshot, "file");
    } catch (const InputError& error) {
      return error.what();
    }
    return "taken";
  };
  Block* block = pool.allocate(1000, kMain);
  MemorySnapshot lost = recorded.snapshot();
  lost.segments.clear();
  EXPECT_EQ(refusal(lost), "file: entry 0 (segment_alloc): its segment is not there afterwards");
  MemorySnapshot graph = recorded.snapshot();
  graph.traces[0][1].private_pool = true;
  EXPECT_EQ(refusal(graph),
            "file: entry 1 (alloc): a private pool, of CUDA graphs or a MemPool, is not simulated");
  pool.free(block);
  MemorySnapshot twice = recorded.snapshot();
  twice.traces[0].push_back(twice.traces[0][2]);
  EXPECT_EQ(refusal(twice), "file: entry 4 (free_requested): its block is not there afterwards");
}

// A snapshot of an H100 from outside (shreyansh26/MLSys-Experiments): FERRY_SNAPSHOTS names its
// folder.
TEST(SnapshotReplay, AnH100DidTheSame) {
  const char* const folder = std::getenv("FERRY_SNAPSHOTS");
  const auto file = std::filesystem::path(
                        folder != nullptr ? folder : FERRY_SOURCE_DIR "/../shared/data/snapshots") /
                    "h100_no_grad.pkl";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "no data: " << file.filename().string();
  const SnapshotReplay replay = replay_snapshot(read_memory_snapshot(file), file.string());
  EXPECT_FALSE(replay.difference);
  EXPECT_EQ(replay.entries, 33);
  EXPECT_EQ(replay.allocations, 12);
  EXPECT_EQ(replay.segments, 7);
}

}  // namespace
}  // namespace ferry::sim
