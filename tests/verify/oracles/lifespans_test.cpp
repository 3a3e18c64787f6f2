#include "verify/oracles/lifespans.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string_view>

namespace ferry::verify {
namespace {

constexpr Range kFirst{4096, 512}, kSecond{8192, 512};

void give(Lifespans& run, StreamOpKind kind, Range range, std::uint64_t tag = 0) {
  StreamOp op;
  op.kind = kind;
  op.name = "linear";
  op.tag = tag;
  op.range = range;
  if (kind == StreamOpKind::kKernel) op.writes = {&range, 1};
  run(op);
}

void make(Lifespans& run, Range range, std::uint64_t tag) {
  give(run, StreamOpKind::kAlloc, range);
  give(run, StreamOpKind::kKernel, range, tag);
}

class LifespansTest : public testing::Test {
 protected:
  // Forward makes x, of tag 1, which the first of two nodes saved, and y, which the second did.
  LifespansTest() {
    make(kept_, kFirst, 1);
    make(kept_, kSecond, 2);
    kept_.task_began();
    kept_.node_begins();
    give(kept_, StreamOpKind::kFree, kFirst);
    kept_.node_begins();
    give(kept_, StreamOpKind::kFree, kSecond);
    kept_.task_ended();
  }
  Lifespans kept_;
  Lifespans run_{&kept_};
};

TEST_F(LifespansTest, WhatIsMadeAgainGoesWithItsLastNode) {
  run_.task_began();
  run_.node_begins();
  make(run_, kFirst, 1);
  make(run_, kSecond, 2);
  give(run_, StreamOpKind::kFree, kFirst);
  run_.node_begins();
  give(run_, StreamOpKind::kFree, kSecond);
  run_.task_ended();
  EXPECT_EQ(run_.complaint(), "");
}

TEST_F(LifespansTest, ANodeLateIsTooLate) {
  run_.task_began();
  run_.node_begins();
  make(run_, kFirst, 1);
  EXPECT_EQ(run_.complaint(), "");
  run_.node_begins();
  EXPECT_EQ(run_.complaint(), "the recomputed output of linear is no longer needed");
}

TEST_F(LifespansTest, SoIsTheEndOfTheTask) {
  run_.task_began();
  run_.node_begins();
  run_.node_begins();
  make(run_, kSecond, 2);
  run_.task_ended();
  EXPECT_EQ(run_.complaint(), "the recomputed output of linear is no longer needed");
}

TEST_F(LifespansTest, WhatForwardMadeOrANodeIsNotAsked) {
  make(run_, kFirst, 1);
  run_.task_began();
  run_.node_begins();
  make(run_, kSecond, 3);
  run_.node_begins();
  run_.node_begins();
  run_.task_ended();
  EXPECT_EQ(run_.complaint(), "");
}

}  // namespace
}  // namespace ferry::verify
