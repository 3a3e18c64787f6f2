#include "vgpu/runtime/schedule.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <stdexcept>
#include <string>

namespace ferry::vgpu {
namespace {

class ScheduleTest : public testing::Test {
 protected:
  // Notes its name when it runs.
  void give(Stream& stream, const std::string& name) {
    schedule_.choose_tempo(stream);
    schedule_.push(stream, {.body = [this, name] { ran_ += name; }});
  }
  SnapshotRef record(Stream& stream) {
    const auto snapshot = std::make_shared<Snapshot>(stream, nullptr);
    schedule_.push(stream, {.fulfil = snapshot});
    return snapshot;
  }

  Streams streams_;
  Faults faults_;
  Schedule schedule_{streams_, faults_};
  Stream& first_ = *streams_.create(0, false, 0);
  Stream& second_ = *streams_.create(0, false, 0);
  std::string ran_;
};

TEST_F(ScheduleTest, EagerWorkRunsAndLazyWorkWaitsToBeFinished) {
  schedule_.set_tempo(Tempo::kLazy, 0);
  give(first_, "a");
  give(second_, "b");
  schedule_.set_tempo(second_, Tempo::kEager);
  schedule_.run_eager();
  EXPECT_EQ(ran_, "b");
  schedule_.host_calls();
  EXPECT_EQ(ran_, "b");
  schedule_.finish(first_);
  EXPECT_EQ(ran_, "ba");
}

TEST_F(ScheduleTest, ToFinishRunsWhatIsWaitedForAndNoMore) {
  schedule_.set_tempo(Tempo::kLazy, 0);
  give(first_, "a");
  const SnapshotRef a = record(first_);
  give(first_, "b");
  schedule_.push(second_, {.wait_for = a});
  give(second_, "c");
  const SnapshotRef c = record(second_);
  schedule_.finish(c);
  EXPECT_EQ(ran_, "ac");
  EXPECT_TRUE(a->is_done());
}

TEST_F(ScheduleTest, WorkThatWaitsDoesNotRunEagerly) {
  schedule_.set_tempo(Tempo::kEager, 0);
  schedule_.set_tempo(first_, Tempo::kLazy);
  give(first_, "a");
  schedule_.push(second_, {.wait_for = record(first_)});
  give(second_, "b");
  schedule_.run_eager();
  EXPECT_EQ(ran_, "");
  schedule_.finish_device(0);
  EXPECT_EQ(ran_, "ab");
}

TEST_F(ScheduleTest, SleepingWorkWakesAfterSoManyCalls) {
  schedule_.push(first_, {.sleep_us = 3});
  give(first_, "a");
  schedule_.run_eager();
  schedule_.host_calls();
  schedule_.host_calls();
  EXPECT_EQ(ran_, "");
  schedule_.host_calls();
  EXPECT_EQ(ran_, "a");
}

TEST_F(ScheduleTest, EqualSeedsGiveEqualOrders) {
  const auto order = [this](std::uint64_t seed) {
    schedule_.set_tempo(Tempo::kMixed, seed);
    ran_.clear();
    for (int i = 0; i < 8; ++i) {
      give(first_, "a");
      give(second_, "b");
      schedule_.run_eager();
      schedule_.host_calls();
    }
    schedule_.finish_everything();
    return ran_;
  };
  std::set<std::string> orders;
  for (std::uint64_t seed = 0; seed < 32; ++seed) {
    const std::string first = order(seed);
    EXPECT_EQ(order(seed), first);
    orders.insert(first);
  }
  EXPECT_GT(orders.size(), 3u);
}

TEST_F(ScheduleTest, ABodyThatThrowsBreaksTheDevice) {
  schedule_.push(first_, {.body = [] { throw std::runtime_error("out of bounds"); }});
  EXPECT_EQ(faults_.take_error("cudaMalloc"), cudaSuccess);
  schedule_.finish(first_);
  EXPECT_EQ(faults_.take_error("cudaMalloc"), cudaErrorAssert);
}

}  // namespace
}  // namespace ferry::vgpu
