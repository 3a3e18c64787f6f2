#include "sim/check/values.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace ferry::check {
namespace {

constexpr Range kX{1000, 100}, kY{1100, 100}, kZ{2000, 100};
constexpr Range kHost{std::uint64_t{1} << 60, 100};

void alloc(Values& values, Range range) {
  StreamOp op;
  op.kind = StreamOpKind::kAlloc;
  op.range = range;
  values(op);
}
void copy(Values& values, Range from, Range to) {
  StreamOp op;
  op.kind = StreamOpKind::kCopy;
  op.reads = {&from, 1};
  op.writes = {&to, 1};
  values(op);
}
void kernel(Values& values, std::uint64_t tag, const std::vector<Range>& reads,
            const std::vector<Range>& writes) {
  StreamOp op;
  op.tag = tag;
  op.reads = reads;
  op.writes = writes;
  values(op);
}

TEST(Values, ARoundTripOverTheHostReadsTheSame) {
  Values values;
  values.write(kX, 7);
  const std::uint64_t before = values.read(kX);
  copy(values, kX, kHost);
  alloc(values, kX);
  EXPECT_NE(values.read(kX), before);
  copy(values, kHost, kZ);
  EXPECT_EQ(values.read(kZ), before);
}

TEST(Values, ACopyInPiecesReadsTheSame) {
  Values values;
  values.write(kX, 7);
  for (const std::uint64_t part : {3, 0, 2, 1}) {
    copy(values, {kX.address + part * 25, 25}, {kZ.address + part * 25, 25});
  }
  EXPECT_EQ(values.read(kZ), values.read(kX));
  EXPECT_NE(values.read({kZ.address, 50}), values.read({kZ.address + 50, 50}));
}

TEST(Values, PiecesInTheWrongPlaceReadDifferently) {
  Values values;
  values.write(kX, 7);
  copy(values, {kX.address, 50}, {kZ.address + 50, 50});
  copy(values, {kX.address + 50, 50}, {kZ.address, 50});
  EXPECT_NE(values.read(kZ), values.read(kX));
}

TEST(Values, ACopyMayOverlapItself) {
  Values values;
  values.write(kX, 7);
  const std::uint64_t before = values.read(kX);
  copy(values, kX, {kX.address + 10, 100});
  EXPECT_EQ(values.read({kX.address + 10, 100}), before);
}

TEST(Values, UndefinedBytesAreAlike) {
  Values values;
  values.write(kX, 7);
  alloc(values, kX);
  EXPECT_EQ(values.read(kX), values.read(kY));
  EXPECT_EQ(values.read({1030, 40}), values.read({5, 40}));
  EXPECT_EQ(values.read({950, 100}), values.read(kY));
}

TEST(Values, AKernelsValueIsItsTagItsOutputAndItsInputs) {
  Values values;
  values.write(kX, 7);
  kernel(values, 1, {kX}, {kY, kZ});
  const std::uint64_t first = values.read(kY);
  EXPECT_NE(values.read(kZ), first);
  kernel(values, 1, {kX}, {kY});
  EXPECT_EQ(values.read(kY), first);
  kernel(values, 2, {kX}, {kY});
  EXPECT_NE(values.read(kY), first);
  kernel(values, 1, {kX, kX}, {kY});
  EXPECT_NE(values.read(kY), first);
  values.write({kX.address + 99, 1}, 8);
  kernel(values, 1, {kX}, {kY});
  EXPECT_NE(values.read(kY), first);
}

TEST(Values, AKernelInPlaceReadsBeforeItWrites) {
  Values values;
  values.write(kX, 7);
  copy(values, kX, kY);
  kernel(values, 1, {kX}, {kX});
  kernel(values, 1, {kY}, {kZ});
  EXPECT_EQ(values.read(kX), values.read(kZ));
}

}  // namespace
}  // namespace ferry::check
