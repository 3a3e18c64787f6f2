#include "sim/gpu/engine.h"

#include <gtest/gtest.h>

#include <vector>

namespace ferry::sim {
namespace {

constexpr LinkRates kOneByteANs{1000, 1000, 1000, 1000, 0};

struct Recorder final : TraceSink {
  void completed(const CompletedOp& op) override { ops.push_back(op); }
  std::vector<CompletedOp> ops;
};

struct EngineTest : ::testing::Test {
  Engine engine;
  DeviceId device = engine.add_device(kOneByteANs);
  StreamId compute = engine.add_stream(device);
  StreamId copies = engine.add_stream(device);
};

TEST_F(EngineTest, AStreamIsAQueue) {
  engine.kernel(compute, 10, 0);
  engine.kernel(compute, 5, 0);
  EXPECT_EQ(engine.drain(), 15);
  EXPECT_EQ(engine.stats(device).compute_busy_ns, 15);
}

TEST_F(EngineTest, CopiesOverlapKernels) {
  engine.kernel(compute, 10, 0);
  engine.copy(copies, CopyKind::kDeviceToHost, 8, 0);
  EXPECT_EQ(engine.drain(), 10);
  EXPECT_EQ(engine.stats(device).d2h_bytes, 8);
  EXPECT_EQ(engine.stats(device).d2h_busy_ns, 8);
}

TEST_F(EngineTest, OneKernelAtATimeByReadyTimeThenSubmission) {
  const StreamId other = engine.add_stream(device);
  engine.kernel(other, 4, 1);
  engine.kernel(compute, 10, 0);
  engine.kernel(compute, 10, 0);  // ready at 10, after `other` at 1
  EXPECT_EQ(engine.run_until_idle(other), 14);
  EXPECT_EQ(engine.drain(), 24);
}

TEST_F(EngineTest, AWaitOrdersAndItsBlockedTimeIsCounted) {
  engine.copy(copies, CopyKind::kHostToDevice, 100, 0);
  const Signal loaded = engine.record(copies, 0);
  engine.kernel(compute, 30, 0);
  engine.wait(compute, loaded, 0);
  engine.kernel(compute, 1, 0);
  EXPECT_EQ(engine.drain(), 101);
  EXPECT_EQ(engine.stats(compute).blocked_ns, 70);
  EXPECT_EQ(engine.stats(compute).blocked_on_copies_ns, 70);
  EXPECT_EQ(engine.stats(copies).blocked_ns, 0);
}

TEST_F(EngineTest, WaitingForAKernelIsNotWaitingForACopy) {
  engine.kernel(compute, 30, 0);
  engine.wait(copies, engine.record(compute, 0), 0);
  engine.drain();
  EXPECT_EQ(engine.stats(copies).blocked_ns, 30);
  EXPECT_EQ(engine.stats(copies).blocked_on_copies_ns, 0);
}

TEST_F(EngineTest, ASignalIsASnapshot) {
  engine.kernel(compute, 10, 0);
  const Signal early = engine.record(compute, 0);
  engine.kernel(compute, 10, 0);
  const Signal late = engine.record(compute, 0);
  EXPECT_EQ(engine.run_until(early), 10);
  EXPECT_FALSE(engine.done(late, 19));
  EXPECT_TRUE(engine.done(late, 20));
  EXPECT_EQ(engine.run_until(early), 10);  // in the past by now
  EXPECT_EQ(engine.now(), 20);
}

TEST_F(EngineTest, NothingStartsBeforeItsIssue) {
  engine.kernel(compute, 10, 100);
  EXPECT_EQ(engine.drain(), 110);
  engine.kernel(compute, 10, 200);
  EXPECT_EQ(engine.drain(), 210);
  EXPECT_EQ(engine.stats(device).compute_busy_ns, 20);
}

TEST_F(EngineTest, ABothRateHoldsOnlyWhileBothRun) {
  const DeviceId pcie = engine.add_device(
      {.h2d_alone = 1000, .d2h_alone = 1000, .h2d_both = 500, .d2h_both = 900, .latency_ns = 0});
  const StreamId up = engine.add_stream(pcie);
  const StreamId down = engine.add_stream(pcie);
  engine.copy(up, CopyKind::kHostToDevice, 100, 0);
  engine.copy(down, CopyKind::kDeviceToHost, 45, 40);
  // Up: 40 bytes alone, 25 in the 50 ns of both, 35 alone. Down: 45 bytes at 0.9.
  EXPECT_EQ(engine.run_until_idle(down), 90);
  EXPECT_EQ(engine.run_until_idle(up), 125);
}

TEST_F(EngineTest, ACopyRoundsUpOnceAndLatencyComesFirst) {
  const DeviceId slow = engine.add_device({3, 3, 3, 3, 7});
  const StreamId stream = engine.add_stream(slow);
  engine.copy(stream, CopyKind::kDeviceToHost, 1, 0);  // 333.3 ns
  EXPECT_EQ(engine.drain(), 7 + 334);
}

TEST_F(EngineTest, EverythingTakesAtLeastANanosecond) {
  engine.kernel(compute, 0, 0);
  engine.copy(copies, CopyKind::kDeviceToHost, 0, 0);
  EXPECT_EQ(engine.drain(), 1);
}

TEST_F(EngineTest, TheTraceTellsEveryOperation) {
  Recorder recorder;
  engine.trace_to(&recorder);
  engine.keep_digest();
  engine.kernel(compute, 10, 0);
  const Signal produced = engine.record(compute, 0);
  engine.wait(copies, produced, 0);
  engine.copy(copies, CopyKind::kDeviceToHost, 5, 0);
  engine.drain();
  ASSERT_EQ(recorder.ops.size(), 4u);
  std::uint64_t digest = 0;
  for (const CompletedOp& op : recorder.ops) digest += op_digest(op.op, op.start, op.end);
  EXPECT_EQ(digest, engine.digest());
  EXPECT_EQ(recorder.ops[1].kind, OpKind::kRecord);
  EXPECT_EQ(recorder.ops[2].kind, OpKind::kWait);
  EXPECT_EQ(recorder.ops[2].start, 0);
  EXPECT_EQ(recorder.ops[2].end, 10);
  EXPECT_EQ(recorder.ops[3].end, 15);
}

TEST_F(EngineTest, TheLongestKernelRunsAfterTheLongestPause) {
  const Time longest = (Time{1} << 50) - 1;
  const Time pause = Time{1} << 60;
  engine.kernel(compute, 1, 0);
  engine.kernel(compute, longest, 0);
  engine.kernel(compute, 1, 1);
  engine.kernel(compute, longest, pause);
  engine.kernel(compute, 3, pause + 1);
  EXPECT_EQ(engine.drain(), pause + longest + 3);
  EXPECT_EQ(engine.stats(device).compute_busy_ns, 2 * longest + 5);
}

TEST_F(EngineTest, ManySignalsStayApart) {
  const StreamId slow = engine.add_stream(engine.add_device({1, 1, 1, 1, 0}));
  std::vector<Signal> signals;
  for (int i = 0; i < 10'000; ++i) {
    engine.kernel(compute, i % 7 + 1, 0);
    signals.push_back(engine.record(compute, 0));
  }
  for (std::size_t i = signals.size(); i-- > 0;) engine.wait(slow, signals[i], 0);
  engine.drain();
  Time end = 0;
  for (std::size_t i = 0; i < signals.size(); ++i) {
    end += static_cast<Time>(i % 7 + 1);
    EXPECT_EQ(engine.run_until(signals[i]), end);
  }
}

TEST_F(EngineTest, AReleasedSignalServesTheWaitsAlreadyGiven) {
  engine.kernel(compute, 10, 0);
  const Signal produced = engine.record(compute, 0);
  engine.wait(copies, produced, 0);
  engine.release(produced);
  const Signal other = engine.record(copies, 0);
  EXPECT_NE(other, produced);
  EXPECT_EQ(engine.run_until(other), 10);
}

TEST_F(EngineTest, MemoryIsBoundedByWhatIsQueued) {
  std::size_t held = 0;
  for (Time host = 0; host < 200'000; host += 10) {
    engine.kernel(compute, 10, host);
    const Signal produced = engine.record(compute, host);
    engine.wait(copies, produced, host);
    engine.release(produced);
    engine.copy(copies, CopyKind::kDeviceToHost, 10, host);
    engine.advance(host);
    if (host == 1'000) held = engine.held_bytes();
  }
  EXPECT_EQ(engine.held_bytes(), held);
}

TEST_F(EngineTest, DevicesRunAtOnceAndSignalsCrossThem) {
  const DeviceId second = engine.add_device(kOneByteANs);
  const StreamId there = engine.add_stream(second);
  engine.kernel(compute, 10, 0);
  engine.kernel(there, 7, 0);
  engine.wait(there, engine.record(compute, 0), 0);
  engine.kernel(there, 7, 0);
  EXPECT_EQ(engine.drain(), 17);
  EXPECT_EQ(engine.stats(second).compute_busy_ns, 14);
}

TEST_F(EngineTest, APeerCopyTakesBothLinksWhileItRuns) {
  const LinkRates slow{
      .h2d_alone = 500, .d2h_alone = 500, .h2d_both = 250, .d2h_both = 400, .latency_ns = 10};
  const DeviceId second = engine.add_device(slow);
  const StreamId there = engine.add_stream(second);
  const StreamId down = engine.add_stream(second);
  engine.peer_copy(there, device, 100, 0);
  engine.copy(down, CopyKind::kDeviceToHost, 60, 100);
  // To the host: 60 bytes at 0.4 after the latency. Fetched: 45 bytes alone after the latency, 40
  // in the 160 ns beside it, 15 alone.
  EXPECT_EQ(engine.run_until_idle(down), 260);
  EXPECT_EQ(engine.run_until_idle(there), 260 + (100 - 45 - 40) * 2);
  EXPECT_EQ(engine.stats(second).peer_bytes, 100);
  EXPECT_EQ(engine.stats(device).peer_bytes, 0);
}

TEST_F(EngineTest, TheFirstPeerCopyMeetsACopyThatRunsAlready) {
  const StreamId there = engine.add_stream(engine.add_device(kOneByteANs));
  engine.copy(copies, CopyKind::kDeviceToHost, 100, 0);
  engine.advance(40);
  engine.peer_copy(there, device, 100, 40);
  // To the host: 40 bytes alone, 60 at half the rate. Fetched: 60 beside it, 40 alone.
  EXPECT_EQ(engine.run_until_idle(copies), 160);
  EXPECT_EQ(engine.run_until_idle(there), 200);
}

TEST_F(EngineTest, ADeviceFetchesOneCopyAtATime) {
  const StreamId there = engine.add_stream(engine.add_device(kOneByteANs));
  const StreamId other = engine.add_stream(engine.add_device(kOneByteANs));
  engine.peer_copy(compute, DeviceId{1}, 100, 0);
  engine.peer_copy(copies, DeviceId{2}, 100, 0);
  EXPECT_EQ(engine.run_until_idle(compute), 100);
  EXPECT_EQ(engine.run_until_idle(copies), 200);
  engine.peer_copy(there, device, 100, 200);  // two devices fetch from one at once
  engine.peer_copy(other, device, 100, 200);
  EXPECT_EQ(engine.drain(), 400);
}

TEST_F(EngineTest, PeerLinksLeaveTheHostsCopiesAlone) {
  const PeerRates nvlink{.bytes_per_us = 10'000, .latency_ns = 3};
  const DeviceId a = engine.add_device(kOneByteANs, kNoPort, nvlink);
  const DeviceId b = engine.add_device(kOneByteANs, kNoPort, nvlink);
  const StreamId up = engine.add_stream(b);
  const StreamId fetch = engine.add_stream(b);
  engine.copy(up, CopyKind::kHostToDevice, 100, 0);
  engine.peer_copy(fetch, a, 100, 0);
  EXPECT_EQ(engine.run_until_idle(fetch), 13);
  EXPECT_EQ(engine.run_until_idle(up), 100);
}

TEST_F(EngineTest, DevicesOnAPortShareItsRate) {
  const PortId port = engine.add_port({.up_bytes_per_us = 1000, .down_bytes_per_us = 1000});
  const StreamId a = engine.add_stream(engine.add_device(kOneByteANs, port));
  const StreamId b = engine.add_stream(engine.add_device(kOneByteANs, port));
  const StreamId up = engine.add_stream(DeviceId{2});
  engine.copy(a, CopyKind::kHostToDevice, 100, 0);
  engine.copy(b, CopyKind::kHostToDevice, 100, 50);
  engine.copy(up, CopyKind::kDeviceToHost, 100, 0);  // the other direction
  EXPECT_EQ(engine.run_until_idle(up), 100);
  EXPECT_EQ(engine.run_until_idle(a), 150);
  EXPECT_EQ(engine.run_until_idle(b), 200);
}

struct MemoryTest : ::testing::Test {
  Engine engine;
  DeviceId device = engine.add_device(kOneByteANs, kNoPort, {10'000, 0}, 10'000);  // 10 bytes a ns
  StreamId compute = engine.add_stream(device);
  StreamId copies = engine.add_stream(device);
};

TEST_F(MemoryTest, ACopyTakesOfTheRateWhileItRuns) {
  engine.kernel(compute, {90, 90}, 0);
  engine.copy(copies, CopyKind::kDeviceToHost, 50, 0);  // a tenth, for 50 ns: 45 are done
  EXPECT_EQ(engine.drain(), 95);
  EXPECT_EQ(engine.stats(device).slowed_ns, 5);
  EXPECT_EQ(engine.stats(device).compute_busy_ns, 95);
}

TEST_F(MemoryTest, TheLongestKernelIsSlowedExactly) {
  const Time longest = (Time{1} << 50) - 1;
  engine.kernel(compute, {1, 0}, 0);
  engine.kernel(compute, {longest, longest}, 0);
  engine.copy(copies, CopyKind::kDeviceToHost, 1'001, 0);  // a tenth, for 1,000 ns of it
  EXPECT_EQ(engine.drain(), 1 + longest + 100);
  EXPECT_EQ(engine.stats(device).slowed_ns, 100);
}

TEST_F(MemoryTest, ACopyThatBeginsLaterSlowsTheRest) {
  engine.kernel(compute, {100, 100}, 0);
  engine.copy(copies, CopyKind::kHostToDevice, 500, 10);
  EXPECT_EQ(engine.run_until_idle(compute), 110);
  EXPECT_EQ(engine.drain(), 510);
}

TEST_F(MemoryTest, BothDirectionsTake) {
  engine.kernel(compute, {80, 80}, 0);
  engine.copy(copies, CopyKind::kDeviceToHost, 500, 0);
  engine.copy(engine.add_stream(device), CopyKind::kHostToDevice, 500, 0);
  EXPECT_EQ(engine.run_until_idle(compute), 100);
}

TEST_F(MemoryTest, AKernelThatNeedsLessThanIsLeftIsNotSlowed) {
  engine.copy(copies, CopyKind::kDeviceToHost, 1000, 0);
  engine.kernel(compute, {100, 90}, 0);
  engine.kernel(compute, {100, 0}, 0);
  EXPECT_EQ(engine.run_until_idle(compute), 200);
  engine.kernel(compute, {95, 93}, 200);  // 979 thousandths, and 900 are left: 919 of its speed
  EXPECT_EQ(engine.run_until_idle(compute), 304);
}

TEST_F(MemoryTest, ACopyBetweenDevicesTakesOfBoth) {
  const DeviceId other = engine.add_device(kOneByteANs, kNoPort, {5'000, 0}, 10'000);
  const StreamId there = engine.add_stream(other);
  engine.peer_copy(engine.add_stream(other), device, 5'000, 0);  // half of each
  engine.kernel(compute, {100, 100}, 0);
  engine.kernel(there, {100, 100}, 0);
  engine.drain();
  EXPECT_EQ(engine.stats(compute).end_ns, 200);
  EXPECT_EQ(engine.stats(there).end_ns, 200);
}

TEST_F(MemoryTest, HalfIsLeftToKernels) {
  const DeviceId slow = engine.add_device(kOneByteANs, kNoPort, {}, 500);
  const StreamId here = engine.add_stream(slow);
  engine.copy(engine.add_stream(slow), CopyKind::kDeviceToHost, 100'000, 0);
  engine.kernel(here, {10, 10}, 0);
  EXPECT_EQ(engine.run_until_idle(here), 20);
}

TEST_F(EngineTest, APeerCopySaysAnotherDevice) {
  EXPECT_DEATH(engine.peer_copy(compute, device, 1, 0), "from another device");
  EXPECT_DEATH(engine.peer_copy(compute, DeviceId{1}, 1, 0), "from another device");
  EXPECT_DEATH(engine.copy(compute, CopyKind::kPeer, 1, 0), "says its source");
}

TEST_F(EngineTest, ADigestThatNobodyKeptAborts) {
  EXPECT_DEATH(engine.digest(), "a digest that nobody kept");
}

TEST_F(EngineTest, AnIssueInThePastAborts) {
  engine.advance(100);
  EXPECT_DEATH(engine.kernel(compute, 1, 99), "before the time already advanced to");
}

}  // namespace
}  // namespace ferry::sim
