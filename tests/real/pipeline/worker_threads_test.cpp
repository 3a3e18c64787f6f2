// The threads of a pipeline: order, errors, and that they go on.
#include "real/pipeline/worker_threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/real/api/message.h"
#include "tests/real/dice.h"

namespace ferry::real {
namespace {

TEST(WorkersTest, ATaskFollowsItsOwnWorkersAndThoseItNames) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Dice draw(seed);
    const auto count = static_cast<std::size_t>(1 + draw.below(4));
    const WorkerThreads workers(count);
    std::vector<std::atomic<bool>> done(static_cast<std::size_t>(draw.below(30)));
    std::vector<WorkerTask> tasks;
    std::vector<std::size_t> last(count, ~std::size_t{0});
    for (std::size_t i = 0; i < done.size(); ++i) {
      WorkerTask task{
          static_cast<std::size_t>(draw.below(static_cast<std::int64_t>(count))), {}, {}};
      for (std::int64_t k = draw.below(3); i > 0 && k > 0; --k) {
        task.after.push_back(static_cast<std::size_t>(draw.below(static_cast<std::int64_t>(i))));
      }
      std::vector<std::size_t> before = task.after;
      if (last[task.worker] != ~std::size_t{0}) before.push_back(last[task.worker]);
      last[task.worker] = i;
      task.run = [&done, before, i] {
        for (const std::size_t other : before) EXPECT_TRUE(done[other]);
        done[i] = true;
      };
      tasks.push_back(std::move(task));
    }
    workers.run(std::move(tasks));
    for (const auto& each : done) EXPECT_TRUE(each);
  }
}

TEST(WorkersTest, WhatRunsIsFinishedAndWhatHasNotBegunIsSkipped) {
  const WorkerThreads workers(2);
  std::atomic<bool> begun = false, finished = false, skipped = true;
  const auto failing = [&] {
    workers.run({{0,
                  {},
                  [&] {
                    while (!begun) std::this_thread::yield();
                    throw std::out_of_range("the first");
                  }},
                 {1,
                  {},
                  [&] {
                    begun = true;
                    std::this_thread::sleep_for(std::chrono::milliseconds(20));
                    finished = true;
                  }},
                 {1, {}, [&] { skipped = false; }},
                 {0, {1}, [&] { skipped = false; }}});
  };
  EXPECT_EQ(message(failing), "the first");
  EXPECT_TRUE(finished);
  EXPECT_TRUE(skipped);
  std::atomic<int> ran = 0;
  workers.run({{0, {}, [&] { ++ran; }}, {1, {0}, [&] { ++ran; }}});
  EXPECT_EQ(ran, 2);
}

TEST(WorkersTest, OfSeveralErrorsTheFirstInTheList) {
  const WorkerThreads workers(2);
  std::atomic<int> begun = 0;
  const auto fail = [&](const char* text) {
    return [&begun, text] {
      for (++begun; begun < 2;) std::this_thread::yield();
      throw std::runtime_error(text);
    };
  };
  EXPECT_EQ(message([&] { workers.run({{1, {}, fail("one")}, {0, {}, fail("two")}}); }), "one");
}

TEST(WorkersTest, NothingToDo) {
  WorkerThreads(0).run({});
  WorkerThreads(3).run({});
}

TEST(WorkersTest, CallersTakeTurns) {
  const WorkerThreads workers(2);
  int plain = 0;  // a race, were two lists run at once
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      for (int k = 0; k < 50; ++k)
        workers.run({{0, {}, [&] { ++plain; }}, {1, {0}, [&] { ++plain; }}});
    });
  }
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(plain, 400);
}

}  // namespace
}  // namespace ferry::real
