// Schedules: what each does, how long it takes and how much it holds, against the closed forms.
#include "shared/pipeline/schedule.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "tests/sim/support/in_range.h"

namespace ferry {
namespace {

using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;

TEST(ClockCycles, OfThreeMicroBatchesAndTwoStages) {
  const std::vector<Pairs> expected = {{{0, 0}}, {{1, 0}, {0, 1}}, {{2, 0}, {1, 1}}, {{2, 1}}};
  EXPECT_EQ(clock_cycles(3, 2), expected);
}

TEST(ClockCycles, MoreStagesThanMicroBatches) {
  const std::vector<Pairs> expected = {{{0, 0}}, {{0, 1}}, {{0, 2}}};
  EXPECT_EQ(clock_cycles(1, 3), expected);
  EXPECT_TRUE(clock_cycles(0, 3).empty());
  EXPECT_TRUE(clock_cycles(3, 0).empty());
}

TEST(ClockCycles, EachMicroBatchIsAtEachStageAtTheClockThatIsTheSumOfTheirNumbers) {
  for (const auto& [m, n] : {std::pair<std::size_t, std::size_t>{1, 1}, {1, 2}, {2, 1}, {3, 3}}) {
    std::size_t pairs = 0, clock = 0;
    for (const Pairs& cycle : clock_cycles(m, n)) {
      EXPECT_FALSE(cycle.empty());
      for (const auto& [i, j] : cycle) EXPECT_TRUE(i < m && j < n && i + j == clock);
      pairs += cycle.size();
      ++clock;
    }
    EXPECT_EQ(pairs, m * n);
  }
}

std::string text(const std::vector<PipelineAction>& actions) {
  std::string words;
  for (const PipelineAction& action : actions) {
    words += (words.empty() ? "" : " ") + std::string(action.forward ? "F" : "B") +
             std::to_string(action.stage) + "." + std::to_string(action.microbatch);
  }
  return words;
}

TEST(Schedule, InWords) {
  const Schedule gpipe = make_schedule(ScheduleKind::kGpipe, 2, 1, 2);
  EXPECT_EQ(text(gpipe.devices[0]), "F0.0 F0.1 B0.0 B0.1");
  EXPECT_EQ(text(gpipe.devices[1]), "F1.0 F1.1 B1.0 B1.1");
  const Schedule one = make_schedule(ScheduleKind::kOneForwardOneBackward, 2, 1, 3);
  EXPECT_EQ(text(one.devices[0]), "F0.0 F0.1 B0.0 F0.2 B0.1 B0.2");
  EXPECT_EQ(text(one.devices[1]), "F1.0 B1.0 F1.1 B1.1 F1.2 B1.2");
  const Schedule interleaved = make_schedule(ScheduleKind::kInterleaved, 2, 2, 2);
  EXPECT_EQ(text(interleaved.devices[0]), "F0.0 F0.1 F2.0 F2.1 B2.0 B2.1 B0.0 B0.1");
  EXPECT_EQ(text(interleaved.devices[1]), "F1.0 F1.1 F3.0 B3.0 F3.1 B3.1 B1.0 B1.1");
}

std::string refusal(ScheduleKind kind, std::size_t devices, std::size_t each, std::size_t count) {
  try {
    make_schedule(kind, devices, each, count);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(Schedule, EachKindHasItsName) {
  EXPECT_EQ(name(ScheduleKind::kGpipe), "gpipe");
  EXPECT_EQ(name(ScheduleKind::kOneForwardOneBackward), "1f1b");
  EXPECT_EQ(name(ScheduleKind::kInterleaved), "interleaved");
}

TEST(Schedule, Refusals) {
  EXPECT_EQ(refusal(ScheduleKind::kGpipe, 2, 2, 4), "gpipe: expected one stage on each device");
  EXPECT_EQ(refusal(ScheduleKind::kOneForwardOneBackward, 2, 2, 4),
            "1f1b: expected one stage on each device");
  EXPECT_EQ(refusal(ScheduleKind::kOneForwardOneBackward, 2, 1, 0),
            "1f1b: expected at least one device, one stage and one micro-batch");
  EXPECT_EQ(refusal(ScheduleKind::kInterleaved, 4, 2, 6),
            "interleaved: expected micro-batches that divide by the devices, found 6 for 4");
}

TEST(Schedule, OneInWhichAllWaitIsRefused) {
  Schedule stuck{2, 1, {{{false, 0, 0}, {true, 0, 0}}, {{true, 1, 0}, {false, 1, 0}}}};
  EXPECT_THROW(in_order(stuck), std::invalid_argument);
}

struct Shape {
  ScheduleKind kind = ScheduleKind::kGpipe;
  std::size_t devices = 1;
  std::size_t each = 1;
  std::size_t microbatches = 1;
};

Shape any_shape() {
  Shape shape;
  shape.kind = static_cast<ScheduleKind>(*test::in_range(0, 3));
  shape.devices = static_cast<std::size_t>(*test::in_range(1, 7));
  shape.microbatches = static_cast<std::size_t>(*test::in_range(1, 20));
  if (shape.kind == ScheduleKind::kInterleaved) {
    shape.each = static_cast<std::size_t>(*test::in_range(1, 5));
    shape.microbatches = shape.devices * static_cast<std::size_t>(*test::in_range(1, 5));
  }
  RC_LOG() << name(shape.kind) << " devices " << shape.devices << " each " << shape.each
           << " microbatches " << shape.microbatches << "\n";
  return shape;
}

RC_GTEST_PROP(ScheduleProperty, EveryActionOnceAndBackwardFromTheFirst, ()) {
  const Shape shape = any_shape();
  const Schedule schedule =
      make_schedule(shape.kind, shape.devices, shape.each, shape.microbatches);
  std::map<std::pair<std::size_t, bool>, std::size_t> next;  // micro-batch, by stage and direction
  std::size_t count = 0;
  for (const auto& [device, action] : in_order(schedule)) {
    RC_ASSERT(action.stage % shape.devices == device);
    const std::size_t expected = next[std::pair(action.stage, action.forward)]++;
    RC_ASSERT(action.microbatch == expected);
    ++count;
  }
  RC_ASSERT(count == 2 * schedule.stages * shape.microbatches);
}

// Every stage takes one unit of time in either direction, and copies take none.
std::size_t makespan(const Schedule& schedule) {
  std::map<std::tuple<bool, std::size_t, std::size_t>, std::size_t> ends;
  std::vector<std::size_t> free(schedule.devices.size());
  for (const auto& [device, action] : in_order(schedule)) {
    std::size_t begin = free[device];
    const auto [forward, stage, i] = action;
    if (forward && stage > 0) begin = std::max(begin, ends.at({true, stage - 1, i}));
    if (!forward && stage + 1 < schedule.stages) {
      begin = std::max(begin, ends.at({false, stage + 1, i}));
    }
    ends[{forward, stage, i}] = free[device] = begin + 1;
  }
  return *std::max_element(free.begin(), free.end());
}

RC_GTEST_PROP(ScheduleProperty, TimeAndMemoryAreThoseOfTheClosedForms, ()) {
  const Shape shape = any_shape();
  const Schedule schedule =
      make_schedule(shape.kind, shape.devices, shape.each, shape.microbatches);
  const std::size_t n = shape.devices;
  const std::size_t work = shape.microbatches * shape.each;
  RC_ASSERT(makespan(schedule) == 2 * (work + n - 1));
  for (std::size_t d = 0; d < n; ++d) {
    std::size_t alive = work;
    if (shape.kind == ScheduleKind::kOneForwardOneBackward) alive = std::min(work, n - d);
    if (shape.kind == ScheduleKind::kInterleaved) {
      alive = std::min(work, 2 * (n - d - 1) + (shape.each - 1) * n + 1);
    }
    RC_ASSERT(alive_max(schedule.devices[d]) == alive);
  }
  const auto permille = bubble_permille(shape.kind, n, shape.each, shape.microbatches) *
                        static_cast<int>(work + n - 1);
  RC_ASSERT(std::abs(permille - 1000 * static_cast<int>(n - 1)) <= static_cast<int>(work + n));
}

}  // namespace
}  // namespace ferry
