#include "shared/pipeline/balance.h"

#include <gtest/gtest.h>

#include <limits>

namespace ferry {
namespace {

using CostList = std::vector<std::int64_t>;
using Sizes = std::vector<std::size_t>;

std::string refusal(const CostList& costs, std::size_t parts) {
  try {
    balance(costs, parts);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(BalanceTest, TheLargestPartIsAsSmallAsCanBe) {
  EXPECT_EQ(balance(CostList{1, 2, 3, 4, 5, 6}, 2), (Sizes{4, 2}));
  EXPECT_EQ(balance(CostList{6, 5, 4, 3, 2, 1}, 3), (Sizes{1, 2, 3}));
  EXPECT_EQ(balance(CostList{1, 1, 10, 1, 1}, 3), (Sizes{2, 1, 2}));
  EXPECT_EQ(balance(CostList{7}, 1), (Sizes{1}));
}

TEST(BalanceTest, EachPartHasAnItem) {
  EXPECT_EQ(balance(CostList{0, 0, 0}, 3), (Sizes{1, 1, 1}));
  EXPECT_EQ(balance(CostList{100, 1, 1, 1}, 3), (Sizes{1, 2, 1}));
  EXPECT_EQ(balance(CostList{1, 1, 1, 100}, 3), (Sizes{2, 1, 1}));
}

// Layers that cost nothing went to the first part: 5 : 1.
TEST(BalanceTest, WhereCostsAreEqualSoAreTheParts) {
  EXPECT_EQ(balance(CostList{0, 0, 0, 0, 0, 0}, 2), (Sizes{3, 3}));
  EXPECT_EQ(balance(CostList{0, 0, 0, 0, 0, 0}, 4), (Sizes{2, 2, 1, 1}));
  EXPECT_EQ(balance(CostList{5, 0, 0, 0}, 2), (Sizes{1, 3}));
  constexpr std::int64_t kMuch = std::numeric_limits<std::int64_t>::max() / 4;
  EXPECT_EQ(balance(CostList{kMuch, kMuch, kMuch, kMuch}, 2), (Sizes{2, 2}));
}

TEST(BalanceTest, WhatCannotBeBalancedIsRefused) {
  EXPECT_EQ(refusal({1}, 0), "expected at least one part to balance");
  EXPECT_EQ(refusal({1, 2}, 3), "expected an item for each part: 2 items cannot be 3 parts");
  EXPECT_EQ(refusal({1, -1}, 2), "expected costs of at least 0");
}

}  // namespace
}  // namespace ferry
