#include "verify/oracles/crossings.h"

#include <gtest/gtest.h>

namespace ferry::verify {
namespace {

TEST(Crossings, ATransferSendsReceivesAndTakes) {
  sim::MachineOptions options;
  options.devices = 2;
  sim::Machine machine(options);
  Crossings crossings(machine, 2);
  const auto give = [&](StreamOpKind kind, Step step, std::uint32_t device) {
    StreamOp op;
    op.kind = kind;
    op.step = step;
    op.stream = machine.compute_stream(device, 0);
    crossings(op);
  };
  give(StreamOpKind::kRecord, Step::kSent, 0);
  give(StreamOpKind::kWait, Step::kReceiveAfterSent, 1);
  give(StreamOpKind::kAlloc, Step::kReceive, 1);  // the copy's memory is none
  CrossingCounts expected(2);
  expected.move(0, 1, 1, 1);
  EXPECT_EQ(crossings.counts().difference(expected), "`receive` 0 times on device 1, not 1");
  give(StreamOpKind::kCopy, Step::kReceive, 1);
  give(StreamOpKind::kRecordUse, Step::kSendInUse, 1);
  give(StreamOpKind::kRecord, Step::kReceived, 1);
  give(StreamOpKind::kWait, Step::kTakeReceived, 1);
  give(StreamOpKind::kRecordUse, Step::kReceivedInUse, 1);
  EXPECT_EQ(crossings.counts().difference(expected), "");
  expected.move(1, 1, 1, 1);
  EXPECT_EQ(crossings.counts().difference(expected), "") << "on one device nothing moves";
}

}  // namespace
}  // namespace ferry::verify
