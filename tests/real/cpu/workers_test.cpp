// Worker streams: order, what fails together, paces, and how they end.
#include "real/cpu/workers.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/real/cpu/cpu_world.h"

namespace ferry::real {
namespace {

using Failure = Workers::Failure;

class CpuWorkers : public ::testing::Test {
 protected:
  void give(const CpuStream& stream, int number) {
    workers->give(stream, {[this, number] { ran.push_back(number); }});
  }
  void give_failing(const CpuStream& stream, const std::string& text) {
    workers->give(stream, {[text] { throw std::runtime_error(text); }});
  }
  void use(std::shared_ptr<Pace> pace) {
    workers = std::make_unique<Workers>(std::move(pace), [] {});
    a = workers->add("a", Failure::kAlone);
    b = workers->add("b", Failure::kAlone);
    together = workers->add("together", Failure::kTogether);
  }
  void give_brief(const CpuStream& stream, std::function<void()> run) {
    workers->give(stream, {std::move(run), {}, /*brief=*/true});
  }
  std::string error_of(const CpuEvent& event) {
    try {
      workers->wait(event);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  }

  std::vector<int> ran;  // by one stream at a time, in tests that read it
  CpuStream a, b, together;
  std::unique_ptr<Workers> workers;
  CpuWorkers() { use(std::make_shared<LazyPace>()); }
};

TEST_F(CpuWorkers, TasksOfAStreamRunInOrder) {
  use(nullptr);
  for (int i = 0; i < 100; ++i) give(a, i);
  workers->wait(workers->record(a));
  ASSERT_EQ(ran.size(), 100U);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(ran[static_cast<std::size_t>(i)], i);
}

TEST_F(CpuWorkers, ABriefTaskOfAnIdleStreamRunsWhereItIsGiven) {
  use(nullptr);
  std::thread::id ran_on;
  give_brief(a, [&] { ran_on = std::this_thread::get_id(); });
  EXPECT_EQ(ran_on, std::this_thread::get_id());
  EXPECT_TRUE(workers->done(workers->record(a)));
}

TEST_F(CpuWorkers, ABriefTaskWaitsItsTurn) {
  use(nullptr);
  Gate gate;
  workers->give(a, {[&] {
                  gate.pass();
                  ran.push_back(1);
                }});
  give_brief(a, [&] { ran.push_back(2); });
  // So does one behind a wait for another stream.
  workers->wait(b, workers->record(a));
  give_brief(b, [&] { ran.push_back(3); });
  EXPECT_FALSE(workers->done(workers->record(a)));
  gate.open();
  workers->wait(workers->record(b));
  EXPECT_EQ(ran, std::vector<int>({1, 2, 3}));
}

TEST_F(CpuWorkers, ABriefTaskThatFailsTellsItsEventAlone) {
  use(nullptr);
  EXPECT_NO_THROW(give_brief(a, [] { throw std::runtime_error("brief"); }));
  const CpuEvent failed = workers->record(a);
  give_brief(a, [&] { ran.push_back(1); });
  EXPECT_EQ(error_of(failed), "brief");
  EXPECT_EQ(error_of(workers->record(a)), "");
  EXPECT_EQ(ran, std::vector<int>({1}));
}

// Or a pace could not bend the timing of small copies.
TEST_F(CpuWorkers, AtAPaceBriefTasksAreHandedOver) {
  give_brief(a, [&] { ran.push_back(1); });
  EXPECT_TRUE(ran.empty());
  workers->finish();
  EXPECT_EQ(ran, std::vector<int>({1}));
}

// The stream's worker may have found it busy, and sleeps.
TEST_F(CpuWorkers, WhatIsGivenBehindABriefTaskRunsUnasked) {
  use(nullptr);
  give(a, 1);  // starts the worker
  workers->finish();
  Gate begun, gate;
  std::promise<void> reached;
  std::thread other([&] {
    give_brief(a, [&] {
      begun.open();
      gate.pass();
    });
  });
  begun.pass();
  workers->give(a, {[&] { reached.set_value(); }});
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // long enough for it to look
  gate.open();
  other.join();
  EXPECT_EQ(reached.get_future().wait_for(std::chrono::seconds(10)), std::future_status::ready);
}

// What several threads give one stream runs one after the other.
TEST_F(CpuWorkers, BriefTasksOfSeveralThreadsDoNotMeet) {
  use(nullptr);
  constexpr int kEach = 2000;
  int count = 0;  // guarded by the stream's order alone
  const auto give_many = [&](bool brief) {
    for (int i = 0; i < kEach; ++i) workers->give(a, {[&] { ++count; }, {}, brief});
  };
  std::thread other([&] { give_many(true); });
  std::thread third([&] { give_many(false); });
  give_many(true);
  other.join();
  third.join();
  workers->finish();
  EXPECT_EQ(count, 3 * kEach);
}

TEST_F(CpuWorkers, ALazyTaskRunsWhenSomebodyWaits) {
  give(a, 1);
  const CpuEvent first = workers->record(a);
  give(a, 2);
  EXPECT_FALSE(workers->done(first));
  workers->wait(first);
  EXPECT_EQ(ran, std::vector<int>({1}));
  workers->finish();
  EXPECT_EQ(ran, std::vector<int>({1, 2}));
}

TEST_F(CpuWorkers, WaitingReachesThroughOtherStreams) {
  give(a, 1);
  workers->wait(b, workers->record(a));
  give(b, 2);
  give(a, 3);
  workers->wait(workers->record(b));
  EXPECT_EQ(ran, std::vector<int>({1, 2}));
}

TEST_F(CpuWorkers, AnEagerTaskHasRunWhenTheGiverGoesOn) {
  use(std::make_shared<EagerPace>());
  give(a, 1);
  EXPECT_EQ(ran, std::vector<int>({1}));
}

TEST_F(CpuWorkers, EqualSeedsGiveEqualSchedules) {
  const auto schedule = [this](std::uint64_t seed) {
    use(std::make_shared<RandomPace>(seed));
    ran.clear();
    for (int i = 0; i < 20; ++i) {
      give(a, 2 * i);
      give(b, 2 * i + 1);
    }
    // One stream at a time, to its end.
    workers->wait(workers->record(a));
    workers->wait(workers->record(b));
    return ran;
  };
  EXPECT_EQ(schedule(1), schedule(1));
  EXPECT_NE(schedule(1), schedule(2));
}

TEST_F(CpuWorkers, AnErrorIsThrownByEveryWait) {
  give_failing(a, "why");
  const CpuEvent event = workers->record(a);
  EXPECT_EQ(error_of(event), "why");
  EXPECT_EQ(error_of(event), "why");
  EXPECT_THROW(workers->wait(b, event), std::runtime_error) << "it is known by now";
}

TEST_F(CpuWorkers, AnErrorSkipsWhatFollowsInItsSection) {
  give_failing(a, "why");
  give(a, 1);
  std::string told;
  workers->give(a, {[] {},
                    [&](const std::exception_ptr& error) {
                      try {
                        std::rethrow_exception(error);
                      } catch (const std::runtime_error& cause) {
                        told = cause.what();
                      }
                    }});
  const CpuEvent failed = workers->record(a);
  give(a, 2);
  const CpuEvent next = workers->record(a);
  EXPECT_EQ(error_of(next), "");
  EXPECT_EQ(error_of(failed), "why");
  EXPECT_EQ(ran, std::vector<int>({2}));
  EXPECT_EQ(told, "why");
}

TEST_F(CpuWorkers, AnErrorTravelsThroughAWait) {
  give_failing(a, "why");
  workers->wait(b, workers->record(a));
  give(b, 1);
  EXPECT_EQ(error_of(workers->record(b)), "why");
  give(b, 2);
  EXPECT_EQ(error_of(workers->record(b)), "");
  EXPECT_EQ(ran, std::vector<int>({2}));
}

// The section is the thread's: another thread's record does not end it, nor carry its error.
TEST_F(CpuWorkers, ARecordOfAnotherThreadLeavesTheSectionAlone) {
  give_failing(a, "why");
  CpuEvent other;
  std::thread([&] { other = workers->record(a); }).join();
  EXPECT_EQ(error_of(other), "");
  EXPECT_EQ(error_of(workers->record(a)), "why");
}

TEST_F(CpuWorkers, TasksThatBuildOnEachOtherFailUntilItIsThrown) {
  give(together, 1);
  const CpuEvent early = workers->record(together);
  give_failing(together, "why");
  give(together, 2);
  const CpuEvent first = workers->record(together);
  give(together, 3);
  const CpuEvent second = workers->record(together);
  EXPECT_EQ(error_of(second), "why");
  EXPECT_EQ(error_of(first), "why");
  EXPECT_EQ(error_of(early), "") << "it was before the failure";
  give(together, 4);
  EXPECT_EQ(error_of(workers->record(together)), "");
  EXPECT_EQ(ran, std::vector<int>({1, 4}));
}

TEST_F(CpuWorkers, AnEventOfAnotherDeviceIsRefused) {
  Workers other(nullptr, [] {});
  const CpuStream stream = other.add("other", Failure::kAlone);
  other.give(stream, {[] {}});
  EXPECT_THROW(workers->wait(a, other.record(stream)), std::logic_error);
}

TEST_F(CpuWorkers, TheEndDrains) {
  give(a, 1);
  workers->wait(b, workers->record(a));
  give(b, 2);
  workers.reset();
  EXPECT_EQ(ran, std::vector<int>({1, 2}));
}

TEST_F(CpuWorkers, AThreadHasItsStreamsName) {
  std::string name(16, '\0');
  workers->give(a, {[&] { pthread_getname_np(pthread_self(), name.data(), name.size()); }});
  workers->finish();
  EXPECT_STREQ(name.c_str(), "a");
}

// A fault in a task is its own, for the program's handler; what others send goes to the program's
// threads.
TEST_F(CpuWorkers, AThreadLeavesItsOwnSignalsToTheProgram) {
  sigset_t blocked;
  workers->give(a, {[&] { pthread_sigmask(SIG_BLOCK, nullptr, &blocked); }});
  workers->finish();
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) {
    EXPECT_EQ(sigismember(&blocked, own), 0) << own;
  }
  for (const int others : {SIGINT, SIGTERM, SIGUSR1, SIGCHLD, SIGALRM}) {
    EXPECT_EQ(sigismember(&blocked, others), 1) << others;
  }
}

// --- How a device ends

// The last handle goes on a worker, with a task: it cannot wait for itself there.
TEST(CpuDeviceEnd, ATaskMayHoldTheLastHandle) {
  std::atomic<int> ran = 0;
  Gate gate;
  {
    auto device = std::make_unique<CpuDevice>();
    const CpuStream stream = device->new_stream("x");
    device->enqueue(stream, [&ran, &gate, held = *device] {
      gate.pass();
      ++ran;
    });
    device->enqueue(stream, [&ran] { ++ran; });
  }
  gate.open();
  while (ran < 2) std::this_thread::yield();
}

TEST(CpuDeviceEnd, AStorageOutlivesItsDevice) {
  at::Tensor x;
  {
    CpuDevice device;
    const CpuStream stream = device.new_stream("x");
    x = make_on(device, stream, {1000});
    device.record_use(Step::kUser, x.storage(), device.lane(Lane::kDeviceToHost));
  }
  Window(x).fill(3);
  x = at::Tensor();
}

using CpuDeviceEndDeathTest = ::testing::Test;

TEST(CpuDeviceEndDeathTest, AStaticDeviceEndsWithTheProcess) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        static CpuDevice device(with_pace(std::make_shared<LazyPace>()));
        device.enqueue(device.new_stream("x"), [] { (void)!write(2, "drained", 7); });
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "drained");
}

TEST(CpuDeviceEndDeathTest, AForkedChildIsToldAndExits) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        CpuDevice device;
        const CpuStream stream = device.new_stream("x");
        device.enqueue(stream, [] {});
        device.finish();
        const pid_t child = fork();
        if (child == 0) {
          try {
            device.enqueue(stream, [] {});
          } catch (const std::runtime_error&) {
            device = CpuDevice();  // the old one ends, without its threads
            _exit(7);
          }
          _exit(1);
        }
        int status = 0;
        waitpid(child, &status, 0);
        std::exit(WIFEXITED(status) ? WEXITSTATUS(status) : 99);
      },
      ::testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace ferry::real
