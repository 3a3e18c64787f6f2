#include "vgpu/time/timeline.h"

#include <gtest/gtest.h>

#include <vector>

namespace ferry::vgpu {
namespace {

constexpr StreamId kMain{0};
constexpr StreamId kSide{8};

// A byte of memory or of the link takes a nanosecond, as does a FLOP, and a launch 10.
Hardware simple_card() {
  Hardware card;
  card.name = "simple";
  card.flops_per_us = {1000, 1000, 1000, 1000};
  card.memory_bytes_per_us = 1000;
  card.kernel_min_ns = 1;
  card.launch_ns = 10;
  card.link = {1000, 1000, 1000, 1000, 0};
  return card;
}

class TimelineTest : public testing::Test {
 protected:
  void kernel(std::int64_t ns, StreamId stream = kMain) {
    timeline_.issue(stream, 0, KernelCost{.flops = ns}, "work");
  }
  std::int64_t end_of(StreamId stream) {
    const Clock::Mark mark = timeline_.record(stream, 0);
    const std::int64_t end = timeline_.run_to_end(mark);
    timeline_.release(mark);
    return end;
  }

  Timeline timeline_{simple_card()};
};

TEST_F(TimelineTest, AKernelTakesTheLongerOfComputingAndOfMovingBytes) {
  timeline_.issue(kMain, 0, KernelCost{.flops = 700, .bytes = 300}, "work");
  EXPECT_EQ(end_of(kMain), 700);
  timeline_.issue(kMain, 0, KernelCost{.flops = 1, .bytes = 300}, "work");
  EXPECT_EQ(end_of(kMain), 1000);
}

TEST_F(TimelineTest, ADurationIsThatOfTheWorkAloneAndIssuesNothing) {
  EXPECT_EQ(timeline_.duration(KernelCost{.flops = 700, .bytes = 300}), 700);
  EXPECT_EQ(timeline_.duration(Sleep{4}), 4);
  EXPECT_EQ(timeline_.duration(CopyCost{.bytes = 100}), 200);  // read and written
  EXPECT_EQ(timeline_.duration(Cost()), 0);
  EXPECT_EQ(timeline_.summary().total_ns, 0);
}

TEST_F(TimelineTest, WorkBeginsNoEarlierThanTheHostLaunchesIt) {
  kernel(1);
  kernel(100);
  EXPECT_EQ(end_of(kMain), 110);
}

TEST_F(TimelineTest, SeveralKernelsOfAnOperatorAreEachAtLeastTheShortest) {
  timeline_.issue(kMain, 0, KernelCost{.bytes = 1, .kernels = 30}, "work");
  EXPECT_EQ(end_of(kMain), 30);
}

TEST_F(TimelineTest, TheHostCopiesPageableMemoryAside) {
  Hardware card = simple_card();
  card.link.pageable_h2d = 500;
  Timeline timeline(card);
  timeline.issue(kMain, 0,
                 CopyCost{.kind = CopyKind::kHostToDevice, .bytes = 400, .pageable = true}, "copy");
  timeline.issue(kSide, 0, KernelCost{.bytes = 100}, "work");
  const Clock::Mark mark = timeline.record(kSide, 0);
  EXPECT_EQ(timeline.run_to_end(mark), 10 + 800 + 100);
  timeline.release(mark);
}

// A host of 2 bytes and 4 FLOPs a nanosecond: the device has nothing to do until it has computed.
TEST_F(TimelineTest, WhatTheHostComputesDelaysWhatIsAskedForNext) {
  Hardware card = simple_card();
  card.host = {.memory_bytes_per_us = 2000, .flops_per_us = 4000};
  Timeline timeline(card);
  timeline.end_step();
  timeline.issue(kMain, 0, KernelCost{.bytes = 100}, "work");  // from 0 to 100
  timeline.host_computes({.bytes = 600});                      // from 10 to 310
  timeline.host_computes({.flops = 160, .bytes = 2});          // to 350
  timeline.issue(kMain, 0, KernelCost{.bytes = 50}, "work");   // from 350 to 400
  timeline.end_step();
  const TimeSummary summary = timeline.summary();
  ASSERT_EQ(summary.steps.size(), 1u);
  EXPECT_EQ(summary.steps[0].total_ns, 400);
  EXPECT_EQ(summary.steps[0].kernels_ns, 150);
  EXPECT_EQ(summary.steps[0].host_ns, 250);
}

TEST_F(TimelineTest, WhereTheHostsRatesAreNotKnownWhatItComputesTakesNoTime) {
  timeline_.host_computes({.flops = 1'000'000, .bytes = 1'000'000});
  kernel(100);
  EXPECT_EQ(end_of(kMain), 100);
}

TEST_F(TimelineTest, ACopyRunsBesideKernelsAndOneOnTheDeviceIsAKernel) {
  kernel(1000);
  timeline_.issue(kSide, 0, CopyCost{CopyKind::kHostToDevice, 500}, "work");
  EXPECT_EQ(end_of(kSide), 510);
  timeline_.issue(kSide, 0, CopyCost{CopyKind::kDeviceToDevice, 100}, "work");
  EXPECT_EQ(end_of(kSide), 1200);  // it reads and writes
}

// A kernel needs the memory for 1,000 ns, of which a copy takes a tenth from 10 on.
TEST_F(TimelineTest, ACopyTakesOfTheRateThatAKernelNeeds) {
  Hardware card = simple_card();
  card.memory_bytes_per_us = 10'000;
  Timeline timeline(card);
  timeline.issue(kMain, 0, KernelCost{.bytes = 10'000}, "work");
  timeline.issue(kSide, 0, CopyCost{CopyKind::kHostToDevice, 5'000}, "work");
  const Clock::Mark mark = timeline.record(kMain, 0);
  EXPECT_EQ(timeline.run_to_end(mark), 10 + 990 * 10 / 9);
  timeline.release(mark);
}

TEST_F(TimelineTest, AStreamWaitsForWhatAnotherWasGivenBefore) {
  timeline_.issue(kSide, 0, CopyCost{CopyKind::kDeviceToHost, 500}, "work");
  const Clock::Mark copied = timeline_.record(kSide, 0);
  timeline_.issue(kSide, 0, CopyCost{CopyKind::kDeviceToHost, 5000}, "work");
  timeline_.wait(kMain, 0, copied);
  timeline_.release(copied);
  kernel(100);
  EXPECT_EQ(end_of(kMain), 600);
}

TEST_F(TimelineTest, WhatTheHostWaitsForItsNextLaunchFollows) {
  kernel(1000, kSide);
  const Clock::Mark mark = timeline_.record(kSide, 0);
  timeline_.host_waits(mark);
  timeline_.release(mark);
  kernel(100);
  EXPECT_EQ(end_of(kMain), 1100);
}

TEST_F(TimelineTest, AHostThatAsksIsToldByTheTimeAndEndsUpThere) {
  kernel(1'000'000);
  const Clock::Mark mark = timeline_.record(kMain, 0);
  int asked = 1;
  for (; timeline_.host_asks(mark) == Clock::Answer::kNotReady; ++asked) ASSERT_LT(asked, 100);
  EXPECT_EQ(asked, 10);  // 1 + 2 + 4 + … µs
  timeline_.release(mark);
  kernel(100, kSide);
  EXPECT_GT(end_of(kSide), 1'000'000);
}

TEST_F(TimelineTest, ASleepOfYearsIsOneOfDays) {
  timeline_.issue(kMain, 0, Sleep{std::int64_t{1} << 60}, "work");
  EXPECT_EQ(end_of(kMain), 1'000'000'000'000'000);  // as long as an op may take
}

TEST_F(TimelineTest, ASleepTakesItsTimeAndAHostFunctionNone) {
  timeline_.issue(kMain, 0, Sleep{300}, "work");
  timeline_.issue(kMain, 0, Cost(), "work");
  EXPECT_EQ(end_of(kMain), 300);
}

TEST_F(TimelineTest, AStepIsFromOneEndToTheNextAndSaysWhatTheDefaultStreamDid) {
  for (int step = 0; step < 4; ++step) {
    timeline_.issue(kSide, 0, CopyCost{CopyKind::kHostToDevice, 400}, "work");
    const Clock::Mark arrived = timeline_.record(kSide, 0);
    timeline_.wait(kMain, 0, arrived);
    timeline_.release(arrived);
    kernel(100);
    timeline_.end_step();
  }
  const TimeSummary summary = timeline_.summary();
  EXPECT_EQ(summary.total_ns, 1700);  // the copies one after another
  ASSERT_EQ(summary.steps.size(), 3u);
  for (const StreamTime& step : summary.steps) {
    EXPECT_EQ(step.total_ns, 400);
    EXPECT_EQ(step.kernels_ns, 100);
    EXPECT_EQ(step.waits_ns, 300);
  }
}

TEST_F(TimelineTest, TheHostIsAThousandLaunchesAheadAtMost) {
  for (int i = 0; i < 4000; ++i) kernel(1'000'000);
  timeline_.issue(kSide, 0, CopyCost{CopyKind::kHostToDevice, 1}, "work");
  EXPECT_GT(end_of(kSide), 2'500'000'000);
}

TEST_F(TimelineTest, DevicesComputeBesideEachOther) {
  kernel(1000);
  timeline_.issue(StreamId{1}, 1, KernelCost{.bytes = 1000}, "work");
  EXPECT_EQ(timeline_.summary().total_ns, 1010);
}

TEST_F(TimelineTest, ACopyBetweenDevicesTakesTheirLinkWhicheverOfThemAsksForIt) {
  Hardware card = simple_card();
  card.peer = {500, 0};
  for (const int asks : {0, 1}) {
    Timeline timeline(card);
    timeline.issue(StreamId{static_cast<std::uint32_t>(asks)}, asks,
                   CopyCost{CopyKind::kPeer, 300, 1 - asks}, "work");
    EXPECT_EQ(timeline.summary().total_ns, 600);
  }
}

}  // namespace
}  // namespace ferry::vgpu
