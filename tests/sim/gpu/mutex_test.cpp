#include "sim/gpu/mutex.h"

#include <gtest/gtest.h>

#include "sim/gpu/machine.h"

namespace ferry::sim {
namespace {

TEST(MutexTest, TakenAndGivenBackIsNoMisuse) {
  locks() = {};
  SimMutex outer, inner;
  outer.lock();
  inner.lock();
  EXPECT_EQ(locks().held, 2);
  inner.unlock();
  outer.unlock();
  EXPECT_EQ(locks().held, 0);
  EXPECT_EQ(locks().misuse, nullptr);
}

TEST(MutexTest, ThreadThatTakesItTwiceIsTold) {
  locks() = {};
  SimMutex mutex;
  mutex.lock();
  mutex.lock();
  EXPECT_STREQ(locks().misuse, "a lock is taken by the thread that holds it");
}

TEST(MutexTest, ReturnOfALockThatIsNotHeldIsTold) {
  locks() = {};
  SimMutex mutex;
  mutex.unlock();
  EXPECT_STREQ(locks().misuse, "a lock is given back that is not held");
  EXPECT_EQ(locks().held, 0);
}

TEST(MutexTest, MachineReportsWhatIsDoneUnderALock) {
  MachineOptions options;
  options.host_total_bytes = 1 << 20;
  Machine machine(options);
  Storage kept = machine.allocate(512, machine.compute_stream(0, 0));
  kept.reset();
  EXPECT_TRUE(machine.hazards().empty());
  Storage dropped = machine.allocate(512, machine.compute_stream(0, 0));
  SimMutex mutex;
  mutex.lock();
  dropped.reset();
  mutex.unlock();
  ASSERT_EQ(machine.hazards().size(), 1u);
  EXPECT_EQ(machine.hazards().front().kind, check::HazardKind::kDeadlock);
  EXPECT_EQ(machine.hazards().front().message, "a storage is dropped under the core's lock");
}

TEST(MutexTest, AMachineBeginsWithoutLocks) {
  SimMutex left;
  left.lock();
  const Machine machine{MachineOptions()};
  EXPECT_EQ(locks().held, 0);
}

}  // namespace
}  // namespace ferry::sim
