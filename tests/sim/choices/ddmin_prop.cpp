// Delta debugging: what is left fails, and none of it can be spared.
#include "sim/choices/ddmin.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <set>
#include <vector>

#include "tests/sim/support/in_range.h"

namespace ferry::choices {
namespace {

TEST(DdminProp, WhatIsNeededIsLeft) {
  EXPECT_TRUE(rc::check("a list fails where it has all of some items", [] {
    const int size = *test::in_range(1, 40);
    std::vector<int> list(static_cast<std::size_t>(size));
    for (int i = 0; i < size; ++i) list[static_cast<std::size_t>(i)] = i;
    std::set<int> needed;
    for (int count = *test::in_range(0, 5); count > 0; --count) {
      needed.insert(*test::in_range(0, size));
    }
    const auto left = ddmin(list, [&](const std::vector<int>& some) {
      return std::includes(some.begin(), some.end(), needed.begin(), needed.end());
    });
    RC_ASSERT(left == std::vector<int>(needed.begin(), needed.end()));
  }));
}

}  // namespace
}  // namespace ferry::choices
