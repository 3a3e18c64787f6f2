// Each assertion of layouts is seen to fail.
#include "shared/skip/layout.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <vector>

namespace ferry {
namespace {

SkipLayout layout_of(std::vector<std::size_t> stages) {
  const std::array<Skippable, 2> layers = {{{"stashes", {{"x"}}, {}}, {"pops", {}, {{"x"}}}}};
  return skip_layout(layers, stages);
}

TEST(LayoutInvariants, ASkipTensorGoesOneWayForward) {
  EXPECT_DEATH(SkipLayout(std::vector<SkipRoute>{{{"x"}, 0, 1}, {{"x"}, 1, 2}}),
               "a skip tensor has one route");
  EXPECT_DEATH(layout_of({0}), "each layer has its stage");
  EXPECT_DEATH(layout_of({1, 0}), "no layer is in a stage before its own");
}

}  // namespace
}  // namespace ferry
