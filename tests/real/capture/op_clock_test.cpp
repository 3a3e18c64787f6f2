// The clock of a recording, where ops are the host's. (A GPU's is tried through `ferry calibrate`.)
#include "real/capture/op_clock.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace ferry::real::capture {
namespace {

TEST(OpClockTest, TellsTheHostsTime) {
  OpClock clock(std::nullopt);
  const OpClock::Begun begun = clock.begin();
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_GE(clock.end(begun), 2'000'000);
  EXPECT_GE(clock.end(clock.begin()), 1);
  EXPECT_FALSE(clock.watches(c10::DeviceType::CPU));
  clock.finish();
}

TEST(OpClockTest, AStallIsCalledWhereOneIsRegistered) {
  static int calls = 0;
  const auto type = c10::DeviceType::PrivateUse1;
  stall(type);
  register_stall(type, [] { ++calls; });
  stall(type);
  register_stall(type, nullptr);
  stall(type);
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace ferry::real::capture
