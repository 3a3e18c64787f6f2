// Layouts: the order of routes, and which of them cross stages.
#include "shared/skip/layout.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace ferry {
namespace {

// "x 0-2", in the layout's order.
std::vector<std::string> texts(const SkipLayout& layout) {
  std::vector<std::string> result;
  for (const SkipRoute& route : layout.routes()) {
    result.push_back(route.name.name + " " + std::to_string(route.from) + "-" +
                     std::to_string(route.to));
  }
  return result;
}

using Text = std::vector<std::string>;
using Routes = std::vector<std::size_t>;

TEST(SkipLayout, RoutesAreSortedByTheStageThatStashesThenByName) {
  EXPECT_EQ(texts(SkipLayout(
                {{{"c"}, 1, 3}, {{"d"}, 0, 1}, {{"b"}, 1, 2}, {{"e"}, 0, 2}, {{"a"}, 2, 3}})),
            (Text{"d 0-1", "e 0-2", "b 1-2", "c 1-3", "a 2-3"}));
  EXPECT_EQ(texts(SkipLayout({{{"b"}, 0, 1}, {{"a"}, 0, 2}})), (Text{"a 0-2", "b 0-1"}));
}

TEST(SkipLayout, ARoutePassesTheStagesBetweenItsEnds) {
  const SkipLayout layout({{{"x"}, 1, 4}, {{"y"}, 4, 5}, {{"z"}, 6, 6}});
  const std::vector<bool> expected = {false, false, true, true, false, false, false};
  for (std::size_t stage = 0; stage < expected.size(); ++stage) {
    EXPECT_EQ(layout.passes(stage), expected[stage]) << stage;
  }
}

// Whatever order its layers declare them in: an index names the same route on every stage.
TEST(SkipLayout, TheOrderOfDeclarationsIsNoMatter) {
  const auto layout = [](std::vector<SkipName> stashes) {
    const std::vector<Skippable> layers = {{"a", std::move(stashes), {}},
                                           {"b", {}, {{"x"}, {"y"}}}};
    return skip_layout(layers, std::array<std::size_t, 2>{0, 1});
  };
  EXPECT_EQ(texts(layout({{"x"}, {"y"}})), (Text{"x 0-1", "y 0-1"}));
  EXPECT_EQ(texts(layout({{"y"}, {"x"}})), (Text{"x 0-1", "y 0-1"}));
}

TEST(SkipLayout, WhatArrivesAndLeavesIsSortedByTheStageThatStashes) {
  const SkipLayout layout(
      {{{"a"}, 2, 3}, {{"b"}, 1, 3}, {{"c"}, 0, 3}, {{"d"}, 1, 2}, {{"stays"}, 3, 3}});
  EXPECT_EQ(layout.into(3), (Routes{0, 1, 3}));
  EXPECT_EQ(layout.out_of(1), (Routes{1, 2}));
  EXPECT_EQ(layout.out_of(3), Routes{}) << "it stays in its stage";
}

TEST(SkipLayout, AnEmptyLayoutKnowsNoName) {
  EXPECT_EQ(SkipLayout().find_crossing({"x"}), SkipLayout::kNone);
  EXPECT_FALSE(SkipLayout().requires_copy({"x"}));
  EXPECT_TRUE(SkipLayout().into(0).empty());
}

TEST(SkipRoute, StaysInTheFirstStageUnlessItSaysOtherwise) {
  const SkipRoute route{{"x"}};
  EXPECT_EQ(route.from, 0u);
  EXPECT_EQ(route.to, 0u);
  EXPECT_FALSE(route.crosses());
}

}  // namespace
}  // namespace ferry
