#include "sim/check/vain_waits.h"

#include <gtest/gtest.h>

namespace ferry::check {
namespace {

void give(VainWaits& waits, StreamOpKind kind, std::uint32_t stream, Step step = Step::kConsume) {
  StreamOp op;
  op.kind = kind;
  op.stream = StreamId{stream};
  op.event = EventId{7};
  op.step = step;
  waits(op);
}

TEST(VainWaits, AStreamNeedNotWaitForItself) {
  VainWaits waits;
  give(waits, StreamOpKind::kRecord, 1);
  give(waits, StreamOpKind::kWait, 2);
  EXPECT_EQ(waits.complaint(), "");
  give(waits, StreamOpKind::kRecord, 2);  // the event is that of another stream now
  give(waits, StreamOpKind::kWait, 2, Step::kUser);
  EXPECT_EQ(waits.complaint(), "") << "a program may";
  give(waits, StreamOpKind::kWait, 2);
  EXPECT_EQ(waits.complaint(), "`consume`: a stream waits for itself");
}

}  // namespace
}  // namespace ferry::check
