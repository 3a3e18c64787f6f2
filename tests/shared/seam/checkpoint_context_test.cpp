#include <gtest/gtest.h>

#include <memory>

#include "shared/seam/checkpoint_context.h"

namespace ferry {
namespace {

TEST(ExecGroupTest, AtItsEndItTellsEach) {
  const auto owner = std::make_shared<int>(0);
  int told = 0;
  {
    ExecGroup group;
    for (int i = 0; i < 100; ++i) group.at_end(owner, [&told] { ++told; });
    EXPECT_EQ(told, 0);
  }
  EXPECT_EQ(told, 100);
}

// A group may serve a whole training: what its callbacks hold is bounded by who is alive.
TEST(ExecGroupTest, TheDeadAreForgotten) {
  ExecGroup group;
  const auto held = std::make_shared<int>(0);
  for (int i = 0; i < 1000; ++i) group.at_end(std::make_shared<int>(i), [held] {});
  EXPECT_LT(held.use_count(), 40);
}

}  // namespace
}  // namespace ferry
