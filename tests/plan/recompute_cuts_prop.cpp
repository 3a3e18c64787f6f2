// Compares the minimum-cut bound at one kernel with all sets of recomputed operators, in small
// random steps.
//
// A step has a forward of a few kernels, each of which reads some earlier results, and a backward
// of two kernels. The bound is taken at the first one (`turn`); the second one reads what is saved.
#include "plan/recompute_cuts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "tests/sim/support/tiny.h"
#include "verify/programs/random_program.h"

namespace ferry::plan {
namespace {

constexpr std::int64_t kLink = 500;  // bytes per us: 2 ns for a byte

struct Small {
  KeepTrace trace;
  std::uint32_t turn = 0;
  std::vector<std::vector<std::uint32_t>> reads;  // storages, by kernel
  std::vector<bool> is_saved;                     // by storage: the last kernel reads it
  std::int64_t bytes(std::uint32_t s) const { return trace.storages[s].block_bytes; }
};

Small draw(choices::Draws& draws) {
  Small small;
  const auto all = static_cast<std::uint32_t>(draws.in(1, 7));
  small.turn = all;
  for (std::uint32_t k = 0; k < all; ++k) {
    small.trace.kernels.push_back({draws.in(1, 3'000), true, false});
    const std::int64_t bytes = draws.in(1, 40) * 512;
    small.trace.storages.push_back(
        {.block_bytes = bytes, .maker = k, .uses = {{k, 0, bytes, false}}});
    small.reads.emplace_back();
    for (std::uint32_t s = 0; s < k; ++s) {
      if (!draws.one_in(s + 1 == k ? 2 : 4)) continue;
      // Sometimes a kernel only writes to it, and so does not need it.
      const bool reads = !draws.one_in(6);
      small.trace.storages[s].uses.push_back({k, 0, small.bytes(s), reads});
      if (reads) small.reads.back().push_back(s);
    }
  }
  for (int i = 0; i < 2; ++i) small.trace.kernels.push_back({1, false, false});
  for (std::uint32_t s = 0; s < all; ++s) {
    small.is_saved.push_back(draws.one_in(2));
    if (!small.is_saved[s]) continue;
    small.trace.storages[s].uses.push_back({small.turn + 1, 0, small.bytes(s), true});
  }
  return small;
}

// Returns the bytes in memory or copied, and the time, if these kernels are recomputed. `again` has
// a bit for each kernel.
std::pair<std::int64_t, sim::Time> cost(const Small& small, std::uint32_t again) {
  std::vector<bool> read = small.is_saved;
  std::int64_t bytes = 0;
  sim::Time ns = 0;
  for (std::uint32_t k = small.turn; k-- > 0;) {
    if ((again >> k & 1) == 0) {
      if (read[k]) bytes += small.bytes(k);
      continue;
    }
    ns += small.trace.kernels[k].ns;
    for (const std::uint32_t s : small.reads[k]) read[s] = true;
  }
  return {bytes, ns};
}

// Returns the lower convex hull of all choices at `room` bytes. A choice may also wait for copies
// of more bytes.
sim::Time hull(const Small& small, std::int64_t room) {
  std::vector<std::pair<std::int64_t, sim::Time>> points;
  for (std::uint32_t again = 0; again < 1U << small.turn; ++again) {
    points.push_back(cost(small, again));
  }
  std::optional<sim::Time> least;
  const auto take = [&](sim::Time ns) { least = std::min(least.value_or(ns), ns); };
  for (const auto& [bytes, ns] : points) {
    take(ns + std::max<std::int64_t>(bytes - room, 0) * 1000 / kLink);
    for (const auto& [more, sooner] : points) {
      if (bytes > room || more <= room) continue;
      take(ns + (sooner - ns) * (room - bytes) / (more - bytes));
    }
  }
  return *least;
}

TEST(RecomputeCutProp, IsTheHullOfAllChoices) {
  int recomputes = 0, waits = 0;
  for (std::uint64_t number = 0; number < 1'500; ++number) {
    choices::Draws draws(32, number);
    const Small small = draw(draws);
    const Turns turns(small.trace, test::tiny_hardware());
    const RecomputeInputs inputs(small.trace, turns);
    RecomputeCut cut(inputs, small.turn, kLink);
    const std::int64_t most = cost(small, 0).first;
    for (int i = 0; i < 6; ++i) {
      const std::int64_t room = most * draws.in(0, 11) / 10;
      const sim::Time least = hull(small, room);
      ASSERT_NEAR(static_cast<double>(cut.least_ns(room)), static_cast<double>(least), 3)
          << "step " << number << ", room " << room;
      recomputes += least > 0;
      waits += least == (most - room) * 1000 / kLink && most > room;
    }
  }
  EXPECT_GT(recomputes, 1'000);
  EXPECT_GT(waits, 100);
}

// Recomputes may read a storage that a name in the code keeps in memory, at no cost.
TEST(RecomputeCutTest, WhatTheForwardStillReadsIsThere) {
  const auto uses = [](std::initializer_list<std::uint32_t> kernels) {
    std::vector<StorageUse> all;
    for (const std::uint32_t kernel : kernels) all.push_back({kernel, 0, 512, !all.empty()});
    return all;
  };
  KeepTrace trace;
  trace.kernels = {{100'000, true, false},
                   {10, true, false},
                   {10, true, false},
                   {10, true, false},
                   {10, false, false}};
  trace.storages = {{.block_bytes = 512, .maker = 0, .uses = uses({0, 1, 3})},
                    {.block_bytes = 512, .maker = 1, .uses = uses({1, 4})}};
  const Turns turns(trace, test::tiny_hardware());
  const RecomputeInputs inputs(trace, turns);
  EXPECT_EQ(RecomputeCut(inputs, 2, kLink).least_ns(0), 10);
  // After its last reader it is gone: it must be kept too, or recomputed.
  trace.storages[0].uses.pop_back();
  const Turns others(trace, test::tiny_hardware());
  EXPECT_EQ(RecomputeCut(RecomputeInputs(trace, others), 2, kLink).least_ns(0), 2 * 512);
}

}  // namespace
}  // namespace ferry::plan
