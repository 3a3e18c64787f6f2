// The model of a forward: which operator makes, reads and saves which storage, and which operators
// may not be recomputed.
#include "plan/span_model.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "formats/builder.h"
#include "tests/sim/support/tiny.h"

namespace ferry::plan {
namespace {

using Numbers = std::vector<std::uint32_t>;

// A chain of operators. The node of the last one saves the result of operator 0, which the last
// operator does not read.
class Row {
 public:
  Row() {
    type_ = b_.type({1 << 18});
    parameter_ = b_.global(GlobalKind::kParameter, type_);
    counter_ = b_.global(GlobalKind::kBuffer, type_);
    body_ = b_.code(CodeKind::kBody, "Backward");
    b_.argument(body_);
    const Slot saved = b_.saved(body_);
    b_.result(body_, b_.op(body_, "gradient", {saved}, type_));
    forward_ = b_.code(CodeKind::kSegment, "forward");
    first_ = b_.op(forward_, "op0", {parameter_}, type_);
    x_ = b_.op(forward_, "op1", {first_}, type_);
  }
  Op& first() { return std::get<Op>(b_.program.codes[forward_].statements.front().action); }
  void exclude(bool begin) { b_.add(forward_, Exclude{begin}); }
  void write(Slot slot) { b_.write(forward_, "write", slot); }
  Slot view_of_first() { return b_.view(forward_, first_, type_); }
  Slot counter() const { return counter_; }
  void read(Slot slot) { x_ = b_.op(forward_, "read", {x_, slot}, type_); }
  void saves_first() {
    const Slot edge = b_.slot(forward_);
    b_.add(forward_, MakeNode{"Backward", b_.node_id(), {parameter_}, {edge}, {first_}, body_});
    x_ = b_.op(forward_, "last", {x_}, type_);
    b_.result(forward_, edge);
  }
  SpanModel model() {
    const Slot loss = b_.slot(0);
    b_.add(0, Call{forward_, {}, {loss}});
    b_.add(0, Backward{{loss}, {}, {}, false, false});
    return span_model(b_.program, trace_keep(b_.program, test::tiny_hardware()));
  }

 private:
  Builder b_;
  TypeId type_ = 0;
  Slot parameter_ = 0, counter_ = 0, first_ = 0, x_ = 0;
  CodeId body_ = 0, forward_ = 0;
};

TEST(SpanModelTest, ANodeMadeBeforeItsOperatorSavesForIt) {
  Row row;
  row.saves_first();
  const SpanModel model = row.model();
  ASSERT_EQ(model.operators.size(), 3u);
  EXPECT_EQ(model.operators[2].saves, Numbers{0});
  EXPECT_TRUE(model.operators[1].saves.empty());
  EXPECT_EQ(model.storages[0].last, 2u);
  EXPECT_TRUE(model.storages[0].saved);
  EXPECT_EQ(model.storages[1].last, 2u) << "it is read";
  EXPECT_FALSE(model.storages[1].saved);
  EXPECT_EQ(model.operators[0].saved_bytes, model.storages[0].bytes);
  EXPECT_EQ(model.operators[1].reads, Numbers{0});
}

TEST(SpanModelTest, WhatIsWrittenInPlaceIsMadeAgainWithTheWrite) {
  Row row;
  row.write(row.view_of_first());
  row.saves_first();
  const SpanModel model = row.model();
  ASSERT_EQ(model.operators.size(), 2u);
  EXPECT_EQ(model.operators[0].count, 3u) << "up to the write";
  EXPECT_TRUE(model.operators[0].again);
  EXPECT_TRUE(model.operators[0].reads.empty()) << "of what others make";
  EXPECT_EQ(model.operators[0].makes, (Numbers{0, 1}));
  EXPECT_EQ(model.operators[1].reads, Numbers{1});
  EXPECT_EQ(model.storages[1].last, 1u);
}

TEST(SpanModelTest, WhatIsWrittenTooLateIsNotMadeAgain) {
  Row row;
  for (int i = 0; i < 16; ++i) row.read(row.counter());
  row.write(row.view_of_first());
  row.saves_first();
  const SpanModel model = row.model();
  EXPECT_EQ(model.operators.size(), 20u);
  EXPECT_TRUE(model.storages[0].written);
  EXPECT_FALSE(model.operators[1].again) << "it reads what is written after it";
  EXPECT_TRUE(model.operators[2].again);
  EXPECT_FALSE(model.operators[18].again) << "it writes";
}

TEST(SpanModelTest, WhatRunsOnceDoesNotRunAgain) {
  Row row;
  row.saves_first();
  row.first().once = true;
  const SpanModel model = row.model();
  EXPECT_FALSE(model.operators[0].again);
  EXPECT_TRUE(model.operators[1].again);
}

TEST(SpanModelTest, AForwardThatWasGivenATensorHasNoModel) {
  Row row;
  row.saves_first();
  row.first().name = kGivenOp;
  EXPECT_TRUE(row.model().operators.empty());
}

TEST(SpanModelTest, ReadersOfAWrittenGlobalDoNotRunAgain) {
  Row row;
  row.read(row.counter());
  row.write(row.counter());
  row.saves_first();
  const SpanModel model = row.model();
  EXPECT_TRUE(model.operators[1].again);
  EXPECT_FALSE(model.operators[2].again);
}

// Hooks do not see saves inside an exclusion, so the survey does not have them.
TEST(SpanModelTest, WhatIsSavedInAnExclusionIsNotMadeAgain) {
  Row row;
  row.exclude(true);
  row.saves_first();
  row.exclude(false);
  const SpanModel model = row.model();
  EXPECT_FALSE(model.operators[1].joins_next);
  EXPECT_FALSE(model.operators[2].again);
  EXPECT_FALSE(model.storages[0].saved);
}

}  // namespace
}  // namespace ferry::plan
