// Random programs of allocations, uses and frees on a few streams, against what must hold always.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

#include "sim/gpu/device_pool.h"
#include "tests/sim/gpu/pool_clock.h"
#include "tests/sim/support/sizes.h"

namespace ferry::sim {
namespace {

using test::kMiB;

struct Action {
  int kind;  // 0 to 3 allocate, 4 and 5 free, 6 use, 7 finish a stream
  std::int64_t bytes;
  std::uint32_t stream;
  std::uint32_t which;
};

std::ostream& operator<<(std::ostream& out, const Action& a) {
  return out << '{' << a.kind << ' ' << a.bytes << "B s" << a.stream << " #" << a.which << '}';
}

rc::Gen<std::vector<Action>> programs() {
  const auto within = [](std::int64_t low, std::int64_t high) {
    return rc::gen::resize(100, rc::gen::inRange<std::int64_t>(low, high + 1));
  };
  const auto bytes = rc::gen::oneOf(within(1, 3'000), within(1, 2 * kMiB), within(1, 30 * kMiB));
  const auto action = rc::gen::apply(
      [](std::int64_t kind, std::int64_t size, std::int64_t stream, std::int64_t which) {
        return Action{static_cast<int>(kind), size, static_cast<std::uint32_t>(stream),
                      static_cast<std::uint32_t>(which)};
      },
      within(0, 7), bytes, within(0, 2), within(0, 1000));
  return rc::gen::resize(200, rc::gen::container<std::vector<Action>>(action));
}

struct Known {
  std::uint64_t begin, end;
};

struct World {
  PoolClock clock;
  DevicePool pool;
  std::vector<Block*> live;

  explicit World(std::int64_t capacity) : pool(0, capacity, clock) {}

  void apply(const Action& a) {
    if (a.kind <= 3) {
      try {
        live.push_back(pool.allocate(a.bytes, StreamId{a.stream}));
        RC_ASSERT(live.back()->stream() == StreamId{a.stream});
      } catch (const OutOfMemory& error) {
        RC_ASSERT(error.reserved_bytes + error.segment_bytes > error.total_bytes);
      }
    } else if (a.kind == 7) {
      clock.finish(StreamId{a.stream});
    } else if (!live.empty()) {
      const std::size_t at = a.which % live.size();
      if (a.kind == 6) return pool.record_use(live[at], StreamId{a.stream});
      pool.free(live[at]);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }

  void check() const {
    std::vector<Known> known;
    std::int64_t bytes = 0, requested = 0;
    for (const Block* block : live) {
      known.push_back({block->address(), block->range().end()});
      bytes += block->bytes();
      requested += block->requested_bytes();
      RC_ASSERT(block->bytes() >= block->requested_bytes());
      RC_ASSERT(block->address() % 512 == 0u);
    }
    std::sort(known.begin(), known.end(),
              [](const Known& a, const Known& b) { return a.begin < b.begin; });
    for (std::size_t i = 1; i < known.size(); ++i) RC_ASSERT(known[i - 1].end <= known[i].begin);
    const DevicePoolStats& stats = pool.stats();
    RC_ASSERT(stats.allocated_bytes.current == bytes);
    RC_ASSERT(stats.active_bytes.current >= bytes);
    RC_ASSERT(stats.active_bytes.current <= stats.reserved_bytes.current);
    RC_ASSERT(stats.requested_bytes.current >= requested);
    RC_ASSERT(stats.reserved_bytes.peak >= stats.reserved_bytes.current);
    RC_ASSERT(!clock.dropped_twice);
  }

  // Everything freed and over: only whole segments are left.
  void finish() {
    for (Block* block : live) pool.free(block);
    live.clear();
    for (std::uint32_t s = 0; s < 3; ++s) clock.finish(StreamId{s});
    pool.free(pool.allocate(512, StreamId{0}));  // polls
    RC_ASSERT(pool.stats().active_bytes.current == 0);
    RC_ASSERT(pool.stats().requested_bytes.current == 0);
    RC_ASSERT(pool.free_blocks() == pool.segments());
    RC_ASSERT(clock.live() == 0u);
  }
};

RC_GTEST_PROP(DevicePoolProp, LiveBlocksNeverMeetAndTheBooksBalance, ()) {
  const std::vector<Action> program = *programs();
  World world{0};
  for (const Action& action : program) {
    world.apply(action);
    world.check();
  }
  world.finish();
}

RC_GTEST_PROP(DevicePoolProp, TheCapacityHolds, ()) {
  const std::vector<Action> program = *programs();
  World world{64 * kMiB};
  for (const Action& action : program) {
    world.apply(action);
    world.check();
    RC_ASSERT(world.pool.stats().reserved_bytes.current <= 64 * kMiB);
  }
  world.finish();
}

// A block whose use is not over does not overlap one that is handed out meanwhile.
RC_GTEST_PROP(DevicePoolProp, ABlockInUseElsewhereIsNotReused, ()) {
  const std::vector<Action> program = *programs();
  World world{0};
  std::vector<Range> held;  // freed with a use that never ends
  for (const Action& action : program) {
    if (action.kind == 7) continue;
    if (action.kind == 4 && !world.live.empty()) {  // `apply` is to free this one
      Block* block = world.live[action.which % world.live.size()];
      world.pool.record_use(block, StreamId{static_cast<std::uint32_t>(block->stream()) + 1});
      held.push_back(block->range());
    }
    const std::size_t before = world.live.size();
    world.apply(action);
    if (world.live.size() <= before) continue;
    const Range fresh = world.live.back()->range();
    for (const Range& range : held) {
      RC_ASSERT(fresh.end() <= range.address || range.end() <= fresh.address);
    }
  }
}

}  // namespace
}  // namespace ferry::sim
