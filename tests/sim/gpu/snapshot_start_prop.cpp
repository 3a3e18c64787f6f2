// A true history that begins anywhere is never told to be different: it is the same, or its start
// is not known. And what a faulty allocator did is found to be different.
#include "sim/gpu/snapshot_start.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "formats/error.h"
#include "formats/memory_snapshot.h"
#include "sim/gpu/snapshot_replay.h"
#include "tests/sim/gpu/pool_clock.h"
#include "tests/sim/gpu/recorded_memory.h"
#include "tests/sim/support/sizes.h"

namespace ferry::sim {
namespace {

using test::kMiB;

// Of sizes that often leave less than 1 MiB of what is free, which then stays with the block.
class Program {
 public:
  Program(std::uint64_t seed, const std::string& conf)
      : random_(seed),
        pool_(0, {.total_bytes = 160 * kMiB, .conf = parse_alloc_conf(conf, "conf")}, clock_) {}

  MemorySnapshot run(int actions) {
    for (int i = 0; i < actions; ++i) act();
    return recorded_.snapshot();
  }

 private:
  std::int64_t below(std::int64_t end) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(end));
  }

  std::int64_t draw_bytes() {
    switch (below(4)) {
      case 0:
        return 1 + below(5000);
      case 1:
        return (1 + below(24)) * kMiB;
      case 2:
        return (2 + below(20)) * kMiB - below(2 * kMiB);
      default:
        return kMiB + 1 + below(12 * kMiB);
    }
  }

  void act() {
    std::int64_t what = below(12);
    // Of blocks that are never split a snapshot does not tell whether they went before the pool
    // waited for other streams.
    if (what == 8 && pool_.options().conf.max_split_bytes) what = 9;
    const StreamId stream{static_cast<std::uint32_t>(below(8) / 7)};
    if (what <= 5) {
      try {
        live_.push_back(pool_.allocate(draw_bytes(), stream));
      } catch (const OutOfMemory&) {
      }
    } else if (what == 6 && below(8) == 0) {
      pool_.empty_cache();
    } else if (what == 7) {
      clock_.finish(stream);
    } else if (!live_.empty()) {
      const auto at = below(static_cast<std::int64_t>(live_.size()));
      Block* block = live_[static_cast<std::size_t>(at)];
      if (what == 8) return pool_.record_use(block, StreamId{1});
      pool_.free(block);
      live_.erase(live_.begin() + at);
    }
  }

  std::mt19937_64 random_;  // the same numbers everywhere
  PoolClock clock_;
  DevicePool pool_;
  RecordedMemory recorded_{pool_};
  std::vector<Block*> live_;
};

struct Counts {
  int all = 0, same = 0, unknown = 0, different = 0;
};

std::string cut(MemorySnapshot snapshot, std::size_t from, Counts& counts) {
  auto& trace = snapshot.traces[0];
  trace.erase(trace.begin(), trace.begin() + static_cast<std::ptrdiff_t>(from));
  const SnapshotReplay replay = replay_snapshot(snapshot, "file");
  ++counts.all;
  if (!replay.difference) {
    ++counts.same;
  } else if (replay.start_unknown) {
    ++counts.unknown;
  } else {
    ++counts.different;
    return "entry " + std::to_string(replay.difference->entry.value_or(0)) + ": " +
           replay.difference->real + " | " + replay.difference->simulated;
  }
  return "";
}

int programs() {
  const char* const many = std::getenv("FERRY_HISTORIES");
  return many != nullptr ? std::atoi(many) : 40;
}

TEST(SnapshotStartProp, ATrueHistoryThatBeginsAnywhereIsNeverDifferent) {
  Counts counts;
  const std::string confs[] = {"", "roundup_power2_divisions:4", "max_split_size_mb:20"};
  for (int seed = 0; seed < programs(); ++seed) {
    const std::string& conf = confs[seed % 3];
    const MemorySnapshot snapshot = Program(static_cast<std::uint64_t>(seed), conf).run(120);
    for (std::size_t from = 0; from <= snapshot.traces[0].size(); ++from) {
      const std::string told = cut(snapshot, from, counts);
      ASSERT_EQ(told, "") << "seed " << seed << ", " << conf << " from entry " << from;
    }
  }
  RecordProperty("same", counts.same);
  RecordProperty("unknown", counts.unknown);
  RecordProperty("all", counts.all);
  EXPECT_GE(counts.same * 1000, counts.all * 995) << counts.unknown << " are not known";
}

// The history of an allocator that rounds otherwise, told to be the usual one's.
TEST(SnapshotStartProp, AnotherAllocatorsHistoryIsDifferent) {
  Counts whole, all;
  for (int seed = 0; seed < programs() / 4; ++seed) {
    MemorySnapshot snapshot =
        Program(static_cast<std::uint64_t>(seed), "roundup_power2_divisions:4").run(120);
    snapshot.conf = {};
    cut(snapshot, 0, whole);
    for (std::size_t from = 0; from < snapshot.traces[0].size() / 2; from += 5) {
      try {
        cut(snapshot, from, all);
      } catch (const InputError&) {  // such blocks cannot have been there
        ++all.all;
        ++all.different;
      }
    }
  }
  RecordProperty("unknown", all.unknown);
  EXPECT_EQ(whole.different, whole.all);
  EXPECT_GE(all.different * 100, all.all * 90) << all.same << " same, " << all.unknown;
}

}  // namespace
}  // namespace ferry::sim
