#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "shared/pipeline/balance.h"

namespace ferry {
namespace {

using Costs = std::span<const std::int64_t>;

std::int64_t sum(Costs costs) {
  return std::accumulate(costs.begin(), costs.end(), std::int64_t{0});
}

// Of all ways to cut.
std::int64_t least_largest(Costs costs, std::size_t parts) {
  if (parts == 1) return sum(costs);
  std::int64_t best = std::numeric_limits<std::int64_t>::max();
  for (std::size_t first = 1; first + parts - 1 <= costs.size(); ++first) {
    const std::int64_t rest = least_largest(costs.subspan(first), parts - 1);
    best = std::min(best, std::max(sum(costs.first(first)), rest));
  }
  return best;
}

RC_GTEST_PROP(BalanceProp, NoWayToCutIsBetter, ()) {
  const auto count = *rc::gen::inRange<std::size_t>(1, 10);
  const auto costs =
      *rc::gen::container<std::vector<std::int64_t>>(count, rc::gen::inRange<std::int64_t>(0, 20));
  const auto parts = *rc::gen::inRange<std::size_t>(1, count + 1);
  const std::vector<std::size_t> sizes = balance(costs, parts);
  RC_ASSERT(sizes.size() == parts);
  std::int64_t largest = 0;
  std::size_t at = 0;
  for (const std::size_t size : sizes) {
    RC_ASSERT(size > 0u);
    RC_ASSERT(at + size <= count);
    largest = std::max(largest, sum(Costs(costs).subspan(at, size)));
    at += size;
  }
  RC_ASSERT(at == count);
  RC_ASSERT(largest == least_largest(costs, parts));
}

}  // namespace
}  // namespace ferry
