// Extents against a naive model: an owner for every unit of the file.
//
// After any sequence of allocations and releases: nothing overlaps; an extent lies in the lowest
// gap that holds it, and the end grows only where there is none; free extents are exactly the gaps,
// each one extent; and when all is released there is an empty file.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "real/disk/extents.h"

namespace ferry::real {
namespace {

struct Naive {
  std::vector<bool> taken;  // to the end of the file

  std::int64_t lowest_gap(std::int64_t bytes) const {
    std::int64_t run = 0;
    for (std::size_t i = 0; i < taken.size(); ++i) {
      run = taken[i] ? 0 : run + 1;
      if (run == bytes) return static_cast<std::int64_t>(i) + 1 - bytes;
    }
    return static_cast<std::int64_t>(taken.size());
  }

  void set(std::int64_t offset, std::int64_t bytes, bool value) {
    const auto end = static_cast<std::size_t>(offset + bytes);
    taken.resize(std::max(taken.size(), end));
    for (auto i = static_cast<std::size_t>(offset); i < end; ++i) {
      RC_ASSERT(taken[i] != value);
      taken[i] = value;
    }
    while (!taken.empty() && !taken.back()) taken.pop_back();
  }

  Extents::Map gaps() const {
    Extents::Map gaps;
    for (std::size_t i = 0; i < taken.size(); ++i) {
      if (taken[i]) continue;
      const std::size_t start = i;
      while (!taken[i]) ++i;  // the last unit is taken
      gaps.emplace(start, i - start);
    }
    return gaps;
  }
};

void expect_same(const Extents& extents, const Naive& naive) {
  RC_ASSERT(extents.end() == static_cast<std::int64_t>(naive.taken.size()));
  RC_ASSERT(extents.free() == naive.gaps());
  RC_ASSERT(extents.taken_bytes() == std::count(naive.taken.begin(), naive.taken.end(), true));
}

RC_GTEST_PROP(ExtentsProp, AgreeWithOwnersOfUnits, ()) {
  Extents extents;
  Naive naive;
  std::vector<std::pair<std::int64_t, std::int64_t>> live;
  const auto release = [&](std::size_t which) {
    const auto [offset, bytes] = live[which];
    live.erase(live.begin() + static_cast<std::ptrdiff_t>(which));
    extents.release(offset, bytes);
    naive.set(offset, bytes, false);
    expect_same(extents, naive);
  };

  // More than 0: allocate so much. Otherwise: release one of those alive.
  const auto steps =
      *rc::gen::container<std::vector<int>>(rc::gen::resize(100, rc::gen::inRange(-6, 13)));
  for (const int step : steps) {
    if (step <= 0) {
      if (!live.empty()) release(static_cast<std::size_t>(-step * 7) % live.size());
      continue;
    }
    const std::int64_t expected = naive.lowest_gap(step);
    const std::int64_t offset = extents.allocate(step);
    RC_ASSERT(offset == expected);
    naive.set(offset, step, true);
    live.emplace_back(offset, step);
    expect_same(extents, naive);
  }
  while (!live.empty()) release(live.size() / 2);
  RC_ASSERT(extents.end() == 0);
}

}  // namespace
}  // namespace ferry::real
