#include "verify/oracles/lives.h"

#include <gtest/gtest.h>

#include <string_view>

#include "verify/programs/random_program.h"

namespace ferry::verify {
namespace {

constexpr Range kX{4096, 512}, kPart{4224, 64};

class LivesTest : public testing::Test {
 protected:
  LivesTest() : lives_(make_program(one_layer())) {}
  static Recipe one_layer() {
    Recipe recipe;
    recipe.layers.resize(1);
    return recipe;
  }
  void give(StreamOpKind kind, Range range, std::string_view name = "") {
    StreamOp op;
    op.kind = kind;
    op.name = name;
    (kind == StreamOpKind::kKernel ? written_ : op.range) = range;
    if (kind == StreamOpKind::kKernel) op.writes = {&written_, 1};
    lives_(op);
  }
  Range written_;
  Lives lives_;
};

TEST_F(LivesTest, WhatRanAgainGoesWithItsBackward) {
  lives_.task_began();
  give(StreamOpKind::kAlloc, kX);
  give(StreamOpKind::kKernel, kPart, "linear");
  lives_.task_began();
  lives_.task_ended();
  EXPECT_EQ(lives_.complaint(), "") << "the outer task goes on";
  lives_.task_ended();
  EXPECT_EQ(lives_.complaint(), "the recomputed output of linear outlives its backward");
}

TEST_F(LivesTest, WhatGoesInTimeIsRight) {
  lives_.task_began();
  give(StreamOpKind::kAlloc, kX);
  give(StreamOpKind::kKernel, kX, "linear");
  give(StreamOpKind::kFree, kX);
  lives_.task_ended();
  EXPECT_EQ(lives_.complaint(), "");
}

TEST_F(LivesTest, WhatForwardOrANodeMakesMayStay) {
  give(StreamOpKind::kAlloc, kX);
  give(StreamOpKind::kKernel, kX, "linear");
  lives_.task_began();
  give(StreamOpKind::kAlloc, {8192, 512});
  give(StreamOpKind::kKernel, {8192, 512}, "grad1.0");
  lives_.task_ended();
  EXPECT_EQ(lives_.complaint(), "");
}

}  // namespace
}  // namespace ferry::verify
