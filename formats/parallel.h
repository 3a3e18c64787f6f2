// Runs work on several threads, for the planner's tables and the matrices of ferry verify. The
// caller must see to it that the result does not depend on the number or the order of threads: for
// example, each number has a place of its own for its result.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace ferry {

inline std::size_t processors() { return std::max(std::thread::hardware_concurrency(), 1u); }

// Calls `work` once for each number below `count`, on at most `threads` threads, including the
// caller's. After an exception no more work begins; it is thrown after all threads have ended.
template <class Work>
void in_parallel(std::size_t count, const Work& work, std::size_t threads = processors()) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr failure;
  const auto run = [&] {
    try {
      for (std::size_t i = next++; i < count; i = next++) work(i);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
      next = count;
    }
  };
  std::vector<std::jthread> helpers;
  for (std::size_t i = 1; i < std::min(threads, count); ++i) helpers.emplace_back(run);
  run();
  helpers.clear();  // joins them
  if (failure) std::rethrow_exception(failure);
}

}  // namespace ferry
