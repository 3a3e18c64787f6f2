// Runs the same function on several threads, for campaigns and for the ranks of `ferry verify`.
// Meanwhile the calling thread can do other work, such as to report progress, and ask if all have
// ended.
//
// The destructor waits until all threads have ended. What a thread throws is lost, except in
// ended_within().
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace ferry::verify {

class Threads {
 public:
  // Called once on each thread. It should end early if `failed` is true: another thread threw.
  using Body = std::function<void(const std::atomic<bool>& failed)>;

  Threads(int count, Body body) : body_(std::move(body)), working_(std::max(count, 1)) {
    for (int i = 0; i < std::max(count, 1); ++i) {
      threads_.emplace_back([this] { run(); });
    }
  }
  ~Threads() {
    for (std::thread& thread : threads_) thread.join();
  }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  // Waits for at most `pause`. Returns true if all threads ended, and rethrows what one of them
  // threw.
  bool ended_within(std::chrono::milliseconds pause) {
    std::unique_lock lock(mutex_);
    const bool ended = ended_.wait_for(lock, pause, [this] { return working_ == 0; });
    if (ended && error_) std::rethrow_exception(error_);
    return ended;
  }

 private:
  void run() {
    std::exception_ptr error;
    try {
      body_(failed_);
    } catch (...) {
      error = std::current_exception();
      failed_ = true;
    }
    const std::lock_guard lock(mutex_);
    if (error && !error_) error_ = error;
    if (--working_ == 0) ended_.notify_all();
  }

  const Body body_;
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;
  std::condition_variable ended_;
  int working_;
  std::exception_ptr error_;
  std::vector<std::thread> threads_;
};

}  // namespace ferry::verify
