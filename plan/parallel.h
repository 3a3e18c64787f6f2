// Work on all processors. What comes of it must not depend on their number.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace ferry::plan {

// Calls `work` once for each number below `count`, on several threads. Throws what one of them
// threw, after all have ended.
template <class Work>
void in_parallel(std::size_t count, const Work& work) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr failure;
  const auto run = [&] {
    try {
      for (std::size_t i = next++; i < count; i = next++) work(i);
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
      next = count;
    }
  };
  std::vector<std::jthread> helpers;
  const std::size_t most = std::max(std::thread::hardware_concurrency(), 1u);
  for (std::size_t i = 1; i < std::min(most, count); ++i) helpers.emplace_back(run);
  run();
  helpers.clear();  // joins them
  if (failure) std::rethrow_exception(failure);
}

}  // namespace ferry::plan
