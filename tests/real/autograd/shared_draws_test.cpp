#include "real/autograd/shared_draws.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <thread>

namespace ferry::real {
namespace {

// Runs it on a thread of its own, whose memory the next thread most often gets.
std::uint64_t mark_on_a_thread() {
  std::uint64_t turns = 0;
  std::thread([&] { turns = mark_shared_draws(); }).join();
  return turns;
}

TEST(SharedDrawsTest, TheSameThreadChangesNothing) {
  const std::uint64_t turns = mark_shared_draws();
  EXPECT_EQ(mark_shared_draws(), turns);
}

TEST(SharedDrawsTest, AThreadAfterOneThatEndedIsAnother) {
  const std::uint64_t turns = mark_on_a_thread();
  EXPECT_EQ(mark_on_a_thread(), turns + 1);
  EXPECT_TRUE(draws_are_shared());
}

}  // namespace
}  // namespace ferry::real
