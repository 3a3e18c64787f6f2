// Each assertion of skip tensors is seen to fail: layouts and portals.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "shared/skip/layout.h"
#include "tests/shared/skip/strict_portals.h"

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

using PortalInvariants = test::StrictPortals;

TEST_F(PortalInvariants, APortalHasRoomForOne) {
  const auto hidden = portal();
  hidden->blue(rig_.leaf(), /*again=*/false);
  EXPECT_DEATH(hidden->blue(rig_.leaf(), false), "a portal takes one tensor until that is popped");
}

}  // namespace
}  // namespace ferry
