// What a pool did is replayed as the same, whatever its options and wherever its trace begins; and
// with one address moved it is not.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "formats/memory_snapshot.h"
#include "sim/gpu/snapshot_replay.h"
#include "tests/sim/gpu/pool_clock.h"
#include "tests/sim/gpu/recorded_memory.h"
#include "tests/sim/support/sizes.h"

namespace ferry::sim {
namespace {

using test::kMiB;

std::int64_t below(std::int64_t end) {
  return *rc::gen::resize(100, rc::gen::inRange<std::int64_t>(0, end));
}

std::int64_t draw_bytes() {
  switch (below(4)) {
    case 0:
      return 1 + below(5000);
    case 1:
      return 1 + below(2 * kMiB);
    case 2:
      return (1 + below(40)) * kMiB;
    default:
      return 1 + below(15 * kMiB);
  }
}

// One action on the pool. Of blocks that are never split, a snapshot does not tell whether they
// went before the pool waited for other streams: with them there are no others.
void act(DevicePool& pool, PoolClock& clock, std::vector<Block*>& live) {
  std::int64_t what = below(10);
  if (what == 7 && pool.options().conf.max_split_bytes) what = 8;
  const StreamId stream{static_cast<std::uint32_t>(below(3))};
  if (what <= 4) {
    try {
      live.push_back(pool.allocate(draw_bytes(), stream));
    } catch (const OutOfMemory&) {
    }
  } else if (what == 5 && below(4) == 0) {
    pool.empty_cache();
  } else if (what == 6) {
    clock.finish(stream);
  } else if (!live.empty()) {
    const auto at = below(static_cast<std::int64_t>(live.size()));
    Block* block = live[static_cast<std::size_t>(at)];
    if (what == 7) return pool.record_use(block, stream);
    pool.free(block);
    live.erase(live.begin() + at);
  }
}

RC_GTEST_PROP(SnapshotReplayProp, WhatAPoolDidIsTheSame, ()) {
  const bool expandable = below(3) == 0;
  std::string conf = expandable ? "expandable_segments:True" : "";
  if (below(3) == 0) conf += ",roundup_power2_divisions:4";
  if (!expandable && below(3) == 0) conf += ",max_split_size_mb:20";
  conf.erase(0, conf.starts_with(",") ? 1 : 0);
  PoolClock clock;
  // Drivers reserve addresses downwards, so a new expandable segment comes before the older ones.
  std::uint64_t next = std::uint64_t{1} << 46;
  const bool down = below(2) == 0;
  const auto place = [&]() -> std::uint64_t { return down && expandable ? next -= 1 << 30 : 0; };
  DevicePool pool(
      0, {.total_bytes = 200 * kMiB, .conf = parse_alloc_conf(conf, "conf"), .place = place},
      clock);
  RecordedMemory recorded(pool);
  std::vector<Block*> live;
  // Before the trace begins.
  for (std::int64_t left = expandable ? 0 : below(30); left > 0; --left) act(pool, clock, live);
  recorded.events.clear();
  for (std::int64_t left = 1 + below(60); left > 0; --left) act(pool, clock, live);
  const MemorySnapshot snapshot = parse_memory_snapshot(to_pickle(recorded.snapshot()), "file");
  const SnapshotReplay replay = replay_snapshot(snapshot, "file");
  if (replay.difference) {
    RC_LOG() << conf << ": " << replay.difference->real << " | " << replay.difference->simulated;
  }
  RC_ASSERT(!replay.difference);
}

}  // namespace
}  // namespace ferry::sim
