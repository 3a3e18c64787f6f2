#include "sim/check/lifetime.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ferry::check {
namespace {

constexpr Range kX{1000, 100}, kY{1100, 100};

class Calls {
 public:
  Calls() = default;
  explicit Calls(Lifetime::Options options) : check_(options) {}

  Calls& alloc(Range range) { return give(StreamOpKind::kAlloc, range); }
  Calls& free(Range range) { return give(StreamOpKind::kFree, range); }
  Calls& host_read(Range range) { return give(StreamOpKind::kHostRead, range); }
  Calls& record_use(Range range) { return give(StreamOpKind::kRecordUse, range); }
  Calls& kernel(Range read, Range write) {
    StreamOp op;
    op.reads = {&read, 1};
    op.writes = {&write, 1};
    op.name = "k";
    check_(op);
    return *this;
  }
  Calls& expect_live(Range range) { return check_.expect_live(range), *this; }
  Calls& finish() { return check_.finish(), *this; }

  // "kind earlier→later bytes" of each report.
  std::string found() const {
    std::string all;
    for (const Hazard& h : check_.hazards()) {
      if (!all.empty()) all += "; ";
      all += std::string(name(h.kind)) + " " + std::to_string(h.earlier.op) + "→" +
             std::to_string(h.later.op) + " " + std::to_string(h.range.address) + "+" +
             std::to_string(h.range.bytes);
    }
    return all;
  }
  const std::vector<Hazard>& hazards() const { return check_.hazards(); }

 private:
  Calls& give(StreamOpKind kind, Range range) {
    StreamOp op;
    op.kind = kind;
    op.range = range;
    check_(op);
    return *this;
  }
  Lifetime check_;
};

TEST(Lifetime, AllocatedBytesMayBeUsed) {
  EXPECT_EQ(Calls().alloc(kX).alloc(kY).kernel(kX, kY).free(kX).free(kY).finish().found(), "");
}

TEST(Lifetime, UseAfterFreeNamesTheFree) {
  EXPECT_EQ(Calls().alloc(kX).free(kX).host_read(kX).found(), "use after free 1→2 1000+100");
  EXPECT_EQ(Calls().alloc(kX).free(kX).record_use(kX).found(), "use after free 1→2 1000+100");
  EXPECT_EQ(Calls().alloc(kX).free(kX).alloc({1000, 50}).host_read(kX).found(),
            "use after free 1→3 1050+50");
  EXPECT_EQ(Calls().alloc(kX).free(kX).alloc(kX).host_read(kX).found(), "");
}

TEST(Lifetime, UseOfBytesThatWereNeverAllocated) {
  EXPECT_EQ(Calls().alloc(kX).host_read({1050, 100}).found(),
            "use outside an allocation 0→1 1100+50");
  EXPECT_EQ(Calls().host_read({1050, 0}).found(), "");
  EXPECT_EQ(Calls({.allow_outside = true}).kernel(kX, kY).free(kX).found(), "");
}

TEST(Lifetime, DoubleFree) {
  EXPECT_EQ(Calls().alloc(kX).free(kX).free(kX).found(), "double free 1→2 1000+100");
}

TEST(Lifetime, AFreeNamesAWholeAllocation) {
  EXPECT_EQ(Calls().free(kX).found(), "free of an unknown range 0→0 1000+100");
  EXPECT_EQ(Calls().alloc(kX).free({1000, 50}).found(), "free of an unknown range 0→1 1000+50");
  EXPECT_EQ(Calls().alloc(kX).free({1050, 50}).found(), "free of an unknown range 0→1 1050+50");
}

TEST(Lifetime, BytesInUseAreNotHandedOut) {
  EXPECT_EQ(Calls().alloc(kX).alloc({1050, 100}).found(), "double allocation 0→1 1050+50");
}

TEST(Lifetime, WhatIsLeftIsALeakUnlessExpected) {
  EXPECT_EQ(Calls().alloc(kX).alloc(kY).free(kY).finish().found(), "leak 0→0 1000+100");
  EXPECT_EQ(Calls().alloc(kX).expect_live({1000, 1}).finish().found(), "");
  EXPECT_EQ(Calls().alloc(kY).alloc({kHostBase, 1}).expect_live(kX).finish().hazards().size(), 2u);
}

TEST(Lifetime, AReportIsOneLine) {
  Calls calls;
  calls.alloc(kX).alloc(kY).free(kX).kernel(kX, kY);
  ASSERT_EQ(calls.hazards().size(), 1u);
  EXPECT_EQ(to_string(calls.hazards()[0]),
            "use after free: free #2 (stream 0) → k #3 (stream 0): 100 bytes at 0x3e8");
  Calls leak;
  leak.alloc(kX).finish();
  EXPECT_EQ(to_string(leak.hazards()[0]), "leak: 100 bytes at 0x3e8 from alloc #0 (stream 0)");
}

}  // namespace
}  // namespace ferry::check
